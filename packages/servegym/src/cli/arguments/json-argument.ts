import { InvalidArgumentError } from 'commander';

/** An argument parser for a JSON object. */
export function jsonObject(text: string): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    value = undefined;
  }
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
    return value as Record<string, unknown>;
  }
  throw new InvalidArgumentError(`Expected a JSON object, got \`${text}\`.`);
}
