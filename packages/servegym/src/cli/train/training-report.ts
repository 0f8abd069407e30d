import type { MetricsLine, PpoUpdate, TrainingProgress, TrainingRun } from '@servegym/agents';
import { mean, sampleDeviation } from '@servegym/simulator/statistics';
import { type Form, table } from '../output/print-result.ts';
import type { SeedReport } from './train-one.ts';

/** Clock of a training run. */
interface TrainingClock {
  /** Windows played before this part of the run. */
  readonly firstStep: number;
  /** Since then. */
  readonly wallSeconds: number;
}

/** A line of `metrics.jsonl` with the time that it took. */
export function timedLine(
  { steps, ...figures }: MetricsLine,
  { firstStep, wallSeconds }: TrainingClock,
): MetricsLine {
  return { steps, wall_s: wallSeconds, steps_per_s: (steps - firstStep) / wallSeconds, ...figures };
}

/** One line of progress. */
export function progressLine(run: TrainingRun, progress: TrainingProgress, clock: TrainingClock): string {
  switch (progress.kind) {
    case 'update':
      return updateLine(run.steps, progress.update, clock);
    case 'lesson': {
      const { round, meanReturn, loss } = progress.lesson;
      const player = round === 1 ? run.lessons!.teacher : 'the student';
      return `lesson ${round}: ${player} earns ${meanReturn.toFixed(1)}, the student errs by ${loss.toFixed(3)} nats`;
    }
    case 'generation': {
      const { steps, meanReturn, eliteReturn } = progress.generation;
      const speed = Math.round(steps / clock.wallSeconds);
      return `${steps.toLocaleString('en-US')} windows  ${speed}/s  return ${meanReturn.toFixed(1)}, of the best ${eliteReturn.toFixed(1)}`;
    }
    case 'constant': {
      const { episodes, meanReturn, action } = progress.found;
      return `${episodes} episodes  return ${meanReturn.toFixed(2)}  ${JSON.stringify(action)}`;
    }
  }
}

/** Share done, speed, how the policy does and how it changes, time left. */
function updateLine(
  plannedSteps: number,
  { steps, meanReturn, approxKl, explainedVariance, entropy }: PpoUpdate,
  { firstStep, wallSeconds }: TrainingClock,
): string {
  const speed = (steps - firstStep) / wallSeconds;
  const left = Math.max(0, plannedSteps - steps) / speed;
  return [
    `${Math.min(100, Math.floor((100 * steps) / plannedSteps))} %`.padStart(5),
    `${steps.toLocaleString('en-US')} steps`,
    `${Math.round(speed).toLocaleString('en-US')}/s`,
    `return ${meanReturn === null ? '-' : meanReturn.toFixed(1)}`,
    `KL ${approxKl.toFixed(4)}`,
    `EV ${explainedVariance.toFixed(2)}`,
    `entropy ${entropy.toFixed(2)}`,
    `${Math.ceil(left)} s left`,
  ].join('  ');
}

/** A training for each of several seeds, done. */
interface SeedsRun extends Pick<TrainingRun, 'environment' | 'task' | 'algorithm'> {
  readonly folder: string;
  readonly wallS: number;
  readonly reports: readonly SeedReport[];
}

/** The return of each seed as training last saw it, and what they have in common. */
export const seedsForm: Form<SeedsRun> = {
  json: ({ environment, task, algorithm, folder, wallS, reports }) => ({
    ...{ environment, task, algorithm, folder, wall_s: wallS },
    ...{ final_return: spread(reports), runs: reports },
  }),
  text({ folder, wallS, reports }) {
    const shown = (value: number | null) => (value === null ? '-' : value.toFixed(1));
    const { mean: average, standard_deviation } = spread(reports);
    const windows = reports.reduce((sum, { steps }) => sum + steps, 0);
    return [
      ...table(reports, [
        ['seed', ({ seed }) => String(seed)],
        ['return', ({ final_return }) => shown(final_return)],
        ['policy', ({ files }) => files.policy],
      ]),
      '',
      `mean return ${shown(average)}, standard deviation ${shown(standard_deviation)}, as training last saw it`,
      `Played ${windows.toLocaleString('en-US')} windows in ${wallS.toFixed(1)} s. All files: ${folder}`,
    ].join('\n');
  },
};

function spread(reports: readonly SeedReport[]) {
  const returns = reports.map(({ final_return }) => final_return).filter((value) => value !== null);
  return {
    mean: returns.length === 0 ? null : mean(returns),
    standard_deviation: returns.length < 2 ? null : sampleDeviation(returns),
  };
}
