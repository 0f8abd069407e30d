export { snakeCase } from '@servegym/operators/report';

/** Prints the result of a command: as JSON, or as text for people. */
export function printResult(isJson: boolean, json: () => unknown, text: () => string): void {
  console.log(isJson ? JSON.stringify(json(), null, 2) : text());
}

/** Columns of the names, also where all are shorter. */
const LEAST_WIDTH = 12;

/** Names with their values, a line each; those without a value are left out. */
export function facts(rows: readonly (readonly [name: string, value: string | undefined])[]): string[] {
  const given = rows.filter(([, value]) => value !== undefined);
  const width = Math.max(LEAST_WIDTH, ...given.map(([name]) => name.length)) + 1;
  return given.map(([name, value]) => `${name.padEnd(width)} ${value}`);
}
