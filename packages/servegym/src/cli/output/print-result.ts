/** Prints the result of a command: as JSON, or as text for people. */
export function printResult(isJson: boolean, json: () => unknown, text: () => string): void {
  console.log(isJson ? JSON.stringify(json(), null, 2) : text());
}

/** First letter of a word behind another; `FP16` has none. */
const CAPITAL = /(?<=[a-z0-9])[A-Z]|(?<=[A-Z])[A-Z](?=[a-z])/g;

/** A value whose names in camelCase become snake_case, at any depth: `simulatedS` is `simulated_s`. */
export function snakeCase(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(snakeCase);
  if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, each]) => [
      name.replace(CAPITAL, (letter) => `_${letter.toLowerCase()}`),
      snakeCase(each),
    ]),
  );
}

/** Columns of the names, also where all are shorter. */
const LEAST_WIDTH = 12;

/** Names with their values, a line each; those without a value are left out. */
export function facts(rows: readonly (readonly [name: string, value: string | undefined])[]): string[] {
  const given = rows.filter(([, value]) => value !== undefined);
  const width = Math.max(LEAST_WIDTH, ...given.map(([name]) => name.length)) + 1;
  return given.map(([name, value]) => `${name.padEnd(width)} ${value}`);
}
