import type { CheckResult } from './check-result.ts';

/** Means over few seeds may be this much out of order by chance. */
const ORDER_TOLERANCE = 0.02;

/** A check that each value is at least the one before it. */
export function orderedMeans({
  id,
  title,
  values,
  names,
  advice,
}: {
  readonly id: string;
  readonly title: string;
  readonly values: readonly number[];
  readonly names: readonly string[];
  /** Where they are out of order. */
  readonly advice?: string;
}): CheckResult {
  const holds = values.every((value, i) => i === 0 || value >= values[i - 1] * (1 - ORDER_TOLERANCE));
  return {
    id,
    group: 'physics',
    title,
    outcome: holds ? 'pass' : 'fail',
    figures: Object.fromEntries(names.map((name, i) => [name, values[i]])),
    ...(!holds && advice !== undefined && { advice }),
  };
}
