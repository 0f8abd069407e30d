import type { Criterion } from './check.ts';
import CHECKS from './rfc008.json' with { type: 'json' };

/**
 * The checks of OpenEnv's RFC 008 (environment auto-validation) that authors run, by the criteria that were judged. Those that need
 * the package, a sandbox or an oracle are skipped, and say so in `needs`.
 */
export function rfc008Checks(criteria: readonly Criterion[]) {
  return Object.entries<string | string[]>(CHECKS).map(([check_id, from]) => {
    const judged = criteria.filter(({ id, passed }) => from.includes(id) && passed !== null);
    const needs =
      typeof from === 'string' ? `the ${from}` : judged.length === 0 ? 'a criterion that applies' : null;
    const verdict = judged.every(({ passed }) => passed) ? 'pass' : 'fail';
    const status: 'pass' | 'fail' | 'skip' = needs === null ? verdict : 'skip';
    return { check_id, status, judged_by: needs === null ? judged.map(({ id }) => id) : [], needs };
  });
}
