import { invalidFile } from '../failure.ts';

/** The object of numbers in a policy's text that a search changes, in JavaScript or Python. */
const PARAMETERS = /(?:\bconst |^)parameters(?:\s*:[^=]+)?\s*=\s*\{([^}]*)\}/m;
const ENTRY = /([A-Za-z_$][\w$]*)(["']?\s*:\s*)(-?\d[\d_]*(?:\.\d+)?(?:e[+-]?\d+)?)/gi;

/** A policy's text with numbers in the place of those that it declares. */
export function withParameters(text: string, numbers: readonly number[]): string {
  let at = 0;
  return text.replace(PARAMETERS, (found) =>
    found.replace(ENTRY, (_, name, colon) => `${name}${colon}${Number(numbers[at++].toPrecision(3))}`),
  );
}

/** The numbers that a policy declares. @throws InputError where it declares none */
export function parametersOf(text: string, file: string): readonly { name: string; value: number }[] {
  const [, body = ''] = PARAMETERS.exec(text) ?? [];
  const found = Array.from(body.matchAll(ENTRY), ([, name, , value]) => ({
    name,
    value: Number(value.replaceAll('_', '')),
  }));
  if (found.length > 0) return found;
  throw invalidFile(
    `${file}: expected numbers to search in \`const parameters = { name: 1.5 };\` (Python: \`parameters = {"name": 1.5}\`), got none`,
  );
}
