import { mean, sampleDeviation } from '@servegym/simulator/statistics';
import { alignedRows } from '@servegym/tuning/report';
import type { SeedReport } from './train-seeds.ts';

/** A training for each of several seeds, done. */
export interface SeedsRun {
  readonly environment: string;
  readonly task: string;
  readonly algorithm: string;
  readonly folder: string;
  readonly wallS: number;
  readonly reports: readonly SeedReport[];
}

/** What `--json` prints. */
export function seedsJson({ environment, task, algorithm, folder, wallS, reports }: SeedsRun) {
  return {
    environment,
    task,
    algorithm,
    folder,
    wall_s: wallS,
    final_return: spread(reports),
    runs: reports,
  };
}

/** The return of each seed as training last saw it, and what they have in common. */
export function seedsTable({ folder, wallS, reports }: SeedsRun): string {
  const shown = (value: number | null) => (value === null ? '-' : value.toFixed(1));
  const { mean: average, standard_deviation } = spread(reports);
  const windows = reports.reduce((sum, { steps }) => sum + steps, 0);
  return [
    ...alignedRows([
      ['seed', 'return', 'policy'],
      ...reports.map(({ seed, final_return, files }) => [String(seed), shown(final_return), files.policy]),
    ]),
    '',
    `mean return ${shown(average)}, standard deviation ${shown(standard_deviation)}, as training last saw it`,
    `Played ${windows.toLocaleString('en-US')} windows in ${wallS.toFixed(1)} s. All files: ${folder}`,
  ].join('\n');
}

function spread(reports: readonly SeedReport[]): {
  readonly mean: number | null;
  readonly standard_deviation: number | null;
} {
  const returns = reports.map(({ final_return }) => final_return).filter((value) => value !== null);
  if (returns.length === 0) return { mean: null, standard_deviation: null };
  return {
    mean: mean(returns),
    standard_deviation: returns.length < 2 ? null : sampleDeviation(returns),
  };
}
