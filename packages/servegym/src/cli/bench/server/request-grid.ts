import { InvalidArgumentError } from 'commander';

/** Most sessions at once that one process can be asked for. */
export const MOST_SESSIONS = 16_384;
const MOST_BATCHES = 64;

/**
 * An argument parser for numbers of sessions: `1,8,64`, and `1..1024` for 1, 2, 4 and so on up to 1024, which is always
 * in it.
 */
export function requestGrid(text: string): number[] {
  const grid = text.split(',').flatMap((part) => {
    const [, low, high] = /^(\d+)\.\.(\d+)$/.exec(part.trim()) ?? [];
    if (low === undefined) return [sessions(part.trim(), text)];
    return doubled(sessions(low, text), sessions(high!, text), text);
  });
  if (grid.length > MOST_BATCHES) {
    throw new InvalidArgumentError(`Expected at most ${MOST_BATCHES} numbers, got ${grid.length}.`);
  }
  return grid;
}

function sessions(part: string, text: string): number {
  const count = /^\d+$/.test(part) ? Number(part) : Number.NaN;
  if (count >= 1 && count <= MOST_SESSIONS) return count;
  throw new InvalidArgumentError(
    `Expected numbers of sessions from 1 to ${MOST_SESSIONS}, as \`1,8,64\` or \`1..1024\`, got \`${text}\`.`,
  );
}

function doubled(low: number, high: number, text: string): number[] {
  if (low > high) throw new InvalidArgumentError(`Expected a range to go upwards, got \`${text}\`.`);
  const grid: number[] = [];
  for (let count = low; count < high; count *= 2) grid.push(count);
  return [...grid, high];
}
