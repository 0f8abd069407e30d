/** An echoed input is cut when its JSON would be longer than about this many characters. */
const LONGEST_ECHO = 2000;
const LONGEST_STRING = 500;

/** The value itself when it is short; otherwise a text that says what it was. Looks at no more than it has to. */
export function excerpt(value: unknown): unknown {
  if (typeof value === 'string' && value.length > LONGEST_STRING) {
    return `${value.slice(0, LONGEST_STRING)}… (${value.length} characters)`;
  }
  if (typeof value === 'number' && !Number.isFinite(value)) return String(value);
  return spend(value, LONGEST_ECHO) < 0 ? `(too long to repeat: ${kindOf(value)})` : value;
}

function spend(value: unknown, budget: number): number {
  let left = budget - 4;
  if (typeof value === 'string') return left - value.length;
  if (typeof value !== 'object' || value === null) return left;
  for (const key in value) {
    left = spend((value as Record<string, unknown>)[key], left - key.length);
    if (left < 0) break;
  }
  return left;
}

function kindOf(value: unknown): string {
  return Array.isArray(value) ? `a list of ${value.length}` : 'an object';
}
