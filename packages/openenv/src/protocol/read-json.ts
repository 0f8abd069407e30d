export type JsonObject = Readonly<Record<string, unknown>>;

/** True for a JSON object; false for an array and null. */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Options with the defaults of those that are missing or `undefined`. */
export function withDefaults<Options extends object>(defaults: Options, options: Partial<Options>): Options {
  const given = Object.entries(options).filter(([, value]) => value !== undefined);
  return { ...defaults, ...Object.fromEntries(given) };
}

/** True when the JSON of a value has more than about so many characters. Looks at no more than it has to. */
export function isLongerThan(value: unknown, characters: number): boolean {
  return spend(value, characters) < 0;
}

function spend(value: unknown, budget: number): number {
  let left = budget - 4;
  if (typeof value === 'string') return left - value.length;
  if (typeof value !== 'object' || value === null) return left;
  if (Array.isArray(value)) {
    // `for in` would first list the keys of all.
    for (let i = 0; i < value.length && left >= 0; i++) left = spend(value[i], left);
    return left;
  }
  for (const key in value) {
    left = spend((value as Record<string, unknown>)[key], left - key.length);
    if (left < 0) break;
  }
  return left;
}

type JsonReading =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly message: string; readonly position: number };

/**
 * Parses strict JSON. The literals `NaN` and `Infinity`, which Python's `json.dumps` writes, are not JSON: they are
 * refused with a message that says so.
 */
export function readJson(text: string): JsonReading {
  try {
    return { ok: true, value: JSON.parse(text) };
  } catch (error) {
    const { message } = error as Error;
    const position = Number(/ at position (\d+)/.exec(message)?.[1] ?? 0);
    // Quoted strings are stepped over, so that a text value "NaN" is not taken for the literal.
    const literal = /^(?:[^"]|"(?:[^"\\]|\\.)*")*?(-?\b(?:NaN|Infinity)\b)/s.exec(text.slice(0, 65_536))?.[1];
    const explained = `${literal} is not JSON; expected a finite number or null. (${message})`;
    return { ok: false, message: literal === undefined ? message : explained, position };
  }
}

/** Deepest nesting of objects and lists. */
export const MAX_JSON_DEPTH = 512;
/** Most keys of one object: objects with very many take seconds to build. */
export const MAX_KEYS_OF_OBJECT = 1000;
/** Most keys of all objects of a text together. */
const MAX_KEYS = 50_000;
/** Most entries of all lists and objects of a text together; a trace of 20,000 requests has 80,000. */
export const MAX_JSON_ENTRIES = 100_000;
/** A text of this many characters cannot exceed the limits. */
const ALWAYS_WITHIN = Math.min(2 * MAX_JSON_DEPTH, MAX_KEYS_OF_OBJECT);

const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPENING_BRACKET = 0x5b;
const BACKSLASH = 0x5c;
const CLOSING_BRACKET = 0x5d;
const OPENING_BRACE = 0x7b;
const CLOSING_BRACE = 0x7d;

export type LimitedJsonReading =
  | Extract<JsonReading, { readonly ok: true }>
  | (Extract<JsonReading, { readonly ok: false }> & { readonly isOverLimit?: boolean });

/** Parses the JSON of a client, within the limits above. Its text must itself be limited. */
export function readLimitedJson(text: string, mostEntries = MAX_JSON_ENTRIES): LimitedJsonReading {
  const excess = text.length > ALWAYS_WITHIN ? findExcess(text, mostEntries) : undefined;
  return excess ?? readJson(text);
}

/** The first place at which a text exceeds a limit. Runs before the parser, which would already spend the time. */
function findExcess(text: string, mostEntries: number): LimitedJsonReading | undefined {
  const keysAt = new Int32Array(MAX_JSON_DEPTH + 1);
  let depth = 0;
  let keys = 0;
  let entries = 0;
  for (let position = 0; position < text.length; position++) {
    switch (text.charCodeAt(position)) {
      case QUOTE:
        position = endOfString(text, position);
        break;
      case OPENING_BRACE:
      case OPENING_BRACKET:
        if (++depth > MAX_JSON_DEPTH) {
          return refusal(`Expected objects and lists nested at most ${MAX_JSON_DEPTH} deep`, position);
        }
        keysAt[depth] = 0;
        if (++entries > mostEntries)
          return refusal(`Expected at most ${mostEntries} entries in all`, position);
        break;
      case COMMA:
        if (++entries > mostEntries)
          return refusal(`Expected at most ${mostEntries} entries in all`, position);
        break;
      case CLOSING_BRACE:
      case CLOSING_BRACKET:
        depth = Math.max(0, depth - 1);
        break;
      case COLON:
        if (++keysAt[depth] > MAX_KEYS_OF_OBJECT) {
          return refusal(`Expected objects of at most ${MAX_KEYS_OF_OBJECT} keys`, position);
        }
        if (++keys > MAX_KEYS) return refusal(`Expected at most ${MAX_KEYS} keys in all`, position);
    }
  }
  return undefined;
}

/** The position of the quote that ends a string; the end of the text where there is none. */
function endOfString(text: string, start: number): number {
  let end = start;
  do {
    end = text.indexOf('"', end + 1);
    if (end < 0) return text.length;
  } while (isEscaped(text, end));
  return end;
}

function isEscaped(text: string, quote: number): boolean {
  let first = quote;
  while (text.charCodeAt(first - 1) === BACKSLASH) first--;
  return (quote - first) % 2 === 1;
}

function refusal(expected: string, position: number): LimitedJsonReading {
  return { ok: false, message: `${expected}, got more at position ${position}`, position, isOverLimit: true };
}
