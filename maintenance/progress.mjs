import { stripVTControlCharacters } from 'node:util';

/** Seconds since `startedAt` (of `performance.now()`), for a person to read. */
export function secondsSince(startedAt) {
  return `${((performance.now() - startedAt) / 1000).toFixed(1)} s`;
}

/**
 * Says what long thing begins and how long it took.
 *
 * @template T
 * @param {string} what for instance `Installing npm packages`
 * @param {() => Promise<T>} work
 * @returns {Promise<T>}
 */
export async function announced(what, work) {
  const startedAt = performance.now();
  console.log(`${what} ...`);
  const result = await work();
  console.log(`${what}: done in ${secondsSince(startedAt)}`);
  return result;
}

/** Tells a person why something could not be done, with the output of the command that failed. */
export function explain(error) {
  const lines = [error.message];
  if (error.output) lines.push(stripVTControlCharacters(error.output).trim().replace(/^/gm, '  '));
  return lines.join('\n');
}
