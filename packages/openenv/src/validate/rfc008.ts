import type { Criterion } from './check.ts';
import CHECKS from './rfc008.json' with { type: 'json' };

/** A check of OpenEnv's RFC 008 (environment auto-validation) that authors run. */
interface Rfc008Check {
  readonly check_id: string;
  readonly status: 'pass' | 'fail' | 'skip';
  /** Criteria that it was judged by, or what it needs that a validation does not have. */
  readonly judged_by: readonly string[];
  readonly needs: string | null;
}

/** The local checks of RFC 008 by the criteria that were judged. Those that need the package, a sandbox or an oracle are skipped. */
export function rfc008Checks(criteria: readonly Criterion[]): Rfc008Check[] {
  return Object.entries<string | string[]>(CHECKS).map(([check_id, from]) => {
    const judged = criteria.filter(({ id, passed }) => from.includes(id) && passed !== null);
    const needs =
      typeof from === 'string' ? `the ${from}` : judged.length === 0 ? 'a criterion that applies' : null;
    const status = needs !== null ? 'skip' : judged.every(({ passed }) => passed) ? 'pass' : 'fail';
    return { check_id, status, judged_by: needs === null ? judged.map(({ id }) => id) : [], needs };
  });
}
