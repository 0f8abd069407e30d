import { appendFileSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import {
  type Algorithm,
  finalReturn,
  type MetricsLine,
  type PpoUpdate,
  trainSeeds as submitSeeds,
  type TrainedRun,
  type TrainingProgress,
  type TrainingRun,
  trainPolicy,
} from '@servegym/agents';
import type { JobEngine } from '@servegym/jobs';
import type { Chart, Section } from '@servegym/operators/report';
import { counted } from '@servegym/simulator';
import { mean, sampleDeviation } from '@servegym/simulator/statistics';
import { replaceFile } from '../files.ts';
import { type Form, table } from '../output/print-result.ts';
import { ProgressDisplay } from '../output/progress.ts';
import { canWriteReports, chartSvg, reportPage } from '../output/report-page.ts';

/** Charts of all that was measured during a run, the learning curve first. */
export function metricSections(metrics: readonly MetricsLine[]): Section[] {
  const names = new Set(['mean_return', ...Object.keys(metrics.at(-1) ?? {})]);
  names.delete('steps');
  return Array.from(names, (name) => ({
    ...{ title: name.replaceAll('_', ' '), chart: metricChart(metrics, name), look: 'half' },
  }));
}

/** Weight of a new point in the smoothed line. */
const SMOOTHING = 0.2;

/** A metric over a run: every update that has it, and a smoothed line. */
export function metricChart(metrics: readonly MetricsLine[], name: string): Chart {
  const points = metrics.flatMap(({ steps, [name]: value }) =>
    typeof value === 'number' && Number.isFinite(value) ? [[steps, value] as const] : [],
  );
  const values = points.length === 0 ? [0, 1] : points.map(([, value]) => value);
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const room = 0.05 * (high - low || 1);
  let mean = points[0]?.[1] ?? 0;
  const smoothed = points.map(([steps, value]) => {
    mean += SMOOTHING * (value - mean);
    return [steps, mean] as const;
  });
  const title = name.replaceAll('_', ' ');
  return {
    label: `${title} over the windows played`,
    x: { title: 'windows played', domain: [0, points.at(-1)?.[0] ?? 1], unit: 'count' },
    y: {
      title: name === 'mean_return' ? 'mean return of an episode' : title,
      ...{ domain: [low - room, high + room], unit: 'amount' },
    },
    lines: [
      { look: 'faint', points },
      { look: 'first', points: smoothed },
    ],
  };
}

/** Trains a policy. Shows the progress, and writes metrics and the policy into a folder that exists. */
export async function trainOne(
  run: TrainingRun,
  folder: string,
  { threads, signal }: { readonly threads: number; readonly signal: AbortSignal },
) {
  let log: TrainingLog | undefined;
  const started = performance.now();
  const display = new ProgressDisplay();
  const keepAndShow = (progress: TrainingProgress) => {
    const wallSeconds = (performance.now() - started) / 1000;
    if ('metrics' in progress) {
      log ??= new TrainingLog(folder);
      log.append(timedLine(progress.metrics, wallSeconds));
    }
    const line = progressLine(run, progress, wallSeconds);
    if (progress.kind === 'update') display.show(line, Math.min(1, progress.update.steps / run.steps));
    else console.error(line);
  };
  try {
    const trained = await trainPolicy(run, { threads, signal, onProgress: keepAndShow });
    return {
      /** Windows played. */
      steps: trained.steps,
      /** Mean return of an episode, as training last saw it; `null` when no episode ended. */
      final_return: log === undefined ? trained.finalReturn : finalReturn(log.lines),
      files: written(run, folder, trained, log),
    };
  } finally {
    display.end();
  }
}

/** Outcome of a seed. */
export interface SeedReport extends TrainingReport {
  readonly seed: number;
}

/**
 * Trains with each seed, as jobs, and writes for each what `trainOne` with that seed writes.
 * @param folder it exists; each seed gets a folder in it
 */
export async function trainSeeds(
  jobs: JobEngine,
  run: Omit<TrainingRun, 'seed'>,
  seeds: readonly number[],
  folder: string,
  onProgress?: (share: number) => void,
): Promise<SeedReport[]> {
  const reports = new Map<number, SeedReport>();
  await submitSeeds(jobs, run, seeds, {
    onProgress,
    onTrained: (seed, trained) =>
      reports.set(seed, writeSeed({ ...run, seed }, trained, join(folder, `seed-${seed}`))),
  });
  return seeds.map((seed) => reports.get(seed)!);
}

function writeSeed(run: TrainingRun, trained: TrainedRun, folder: string) {
  mkdirSync(folder, { recursive: true });
  const { steps, finalReturn, metrics } = trained;
  const log = metrics.length > 0 ? new TrainingLog(folder) : undefined;
  for (const line of metrics) log?.append(line);
  return { seed: run.seed, steps, final_return: finalReturn, files: written(run, folder, trained, log) };
}

/** Draws the learning curve and writes the policy, which comes last: where it is, everything is. Answers the paths. */
function written(
  run: TrainingRun,
  folder: string,
  { policy }: TrainedRun,
  log: TrainingLog | undefined,
): Readonly<Record<string, string>> & { readonly policy: string } {
  const isNetwork = run.algorithm === 'ppo' || run.algorithm === 'rollout';
  const path = join(folder, `policy.${isNetwork ? 'safetensors' : 'json'}`);
  const drawn = log?.finish(learningCurveTitle(run));
  replaceFile(path, policy);
  return { policy: path, ...drawn };
}

/** A line of `metrics.jsonl` with the time that it took since the start. */
export function timedLine({ steps, ...figures }: MetricsLine, wallSeconds: number): MetricsLine {
  return { steps, wall_s: wallSeconds, steps_per_s: steps / wallSeconds, ...figures };
}

/** One line of progress. */
export function progressLine(run: TrainingRun, progress: TrainingProgress, wallSeconds: number): string {
  switch (progress.kind) {
    case 'update':
      return updateLine(run.steps, progress.update, wallSeconds);
    case 'generation': {
      const { steps, meanReturn, eliteReturn } = progress.generation;
      const speed = Math.round(steps / wallSeconds);
      const best = eliteReturn === undefined ? '' : `, of the best ${eliteReturn.toFixed(1)}`;
      return `${counted(steps, 'window')}  ${speed}/s  return ${meanReturn.toFixed(1)}${best}`;
    }
    case 'constant': {
      const { episodes, meanReturn, action } = progress.found;
      return `${counted(episodes, 'episode')}  return ${meanReturn.toFixed(2)}  ${JSON.stringify(action)}`;
    }
  }
}

/** Share done, speed, how the policy does and how it changes, time left. */
function updateLine(
  plannedSteps: number,
  { steps, meanReturn, approxKl, explainedVariance, entropy }: PpoUpdate,
  wallSeconds: number,
): string {
  const speed = steps / wallSeconds;
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
      `Played ${counted(windows, 'window')} in ${wallS.toFixed(1)} s. All files: ${folder}`,
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

/** Outcome of a training. */
export type TrainingReport = Awaited<ReturnType<typeof trainOne>>;

/** Records a training: JSON lines as it goes, the learning curve at the end. */
export class TrainingLog {
  readonly lines: MetricsLine[] = [];
  readonly #folder: string;
  readonly #metrics: string;

  constructor(folder: string) {
    this.#folder = folder;
    this.#metrics = join(folder, 'metrics.jsonl');
    replaceFile(this.#metrics, '');
  }

  append(line: MetricsLine): void {
    this.lines.push(line);
    appendFileSync(this.#metrics, `${JSON.stringify(line)}\n`);
  }

  /**
   * Draws the curve. Answers where everything stands. Nothing is drawn where the console is not built.
   */
  finish(title: string): Readonly<Record<string, string>> {
    const files = { metrics: this.#metrics };
    if (!canWriteReports()) {
      console.error('note: no learning curve, because the console is not built');
      return files;
    }
    const svg = chartSvg(metricChart(this.lines, 'mean_return'), title);
    const report = { title, lead: '', sections: metricSections(this.lines) };
    const drawn = (ending: string, content: string) => {
      const path = join(this.#folder, `learning-curve.${ending}`);
      replaceFile(path, content);
      return path;
    };
    return { ...files, curve: drawn('svg', svg), page: drawn('html', reportPage(report)) };
  }
}

const TITLES: Readonly<Record<Algorithm, string>> = {
  ppo: 'PPO',
  rollout: 'Rollouts',
  cem: 'Cross-entropy search',
  static: 'Search of a constant',
};

/** Title of the learning curve of a run. */
function learningCurveTitle({ algorithm, task, seed }: TrainingRun): string {
  return `${TITLES[algorithm]} on ${task}, seed ${seed}`;
}
