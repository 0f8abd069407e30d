export type JsonReading =
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
    const message = (error as Error).message;
    const position = Number(/ at position (\d+)/.exec(message)?.[1] ?? 0);
    return { ok: false, message: explain(text, message), position };
  }
}

function explain(text: string, message: string): string {
  // Quoted strings are stepped over, so that a text value "NaN" is not taken for the literal.
  const literal = /^(?:[^"]|"(?:[^"\\]|\\.)*")*?(-?\b(?:NaN|Infinity)\b)/s.exec(text.slice(0, 65_536))?.[1];
  return literal === undefined
    ? message
    : `${literal} is not JSON; expected a finite number or null. (${message})`;
}
