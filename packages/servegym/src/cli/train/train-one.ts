import { appendFileSync, existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  type Algorithm,
  agentsOf,
  finalReturn,
  isNetworkAlgorithm,
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
import { openJobs } from '../jobs.ts';
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

/** Time between two checkpoints of PPO, s. */
const CHECKPOINT_EVERY_S = 20;

/** Means of a training; without a queue of workers, threads of this process play lessons and generations. */
type Means = Parameters<typeof trainPolicy>[1] & {
  readonly threads: number;
  readonly queue?: string | undefined;
};

/** Trains a policy. Shows the progress, and writes metrics, checkpoints and the policy into a folder that exists. */
export async function trainOne(run: TrainingRun, folder: string, { threads, queue, signal, start }: Means) {
  const { environment, algorithm, lessons } = run;
  const checkpoint = checkpointPath(folder);
  if (start === undefined && existsSync(checkpoint))
    console.error(`note: an earlier run left ${checkpoint}; --resume with it goes on, this one begins anew`);
  const resumed = start !== undefined && 'checkpoint' in start ? start.checkpoint.steps : undefined;
  const firstStep = resumed ?? 0;
  let log = resumed === undefined ? undefined : new TrainingLog(folder, resumed);
  let lessonsGiven = start !== undefined && 'shown' in start ? start.shown.length : 0;
  let started = performance.now();
  let written = started;
  const display = new ProgressDisplay();
  const keepAndShow = (progress: TrainingProgress) => {
    const now = performance.now();
    const clock = { firstStep, wallSeconds: (now - started) / 1000 };
    if (progress.kind === 'lesson') {
      lessonsGiven = progress.lesson.shown.length;
      replaceFile(checkpoint, progress.checkpoint());
      // The speed that is shown is that of PPO.
      started = performance.now();
    } else if (progress.kind === 'update' && now - written >= 1000 * CHECKPOINT_EVERY_S) {
      replaceFile(checkpoint, progress.checkpoint());
      written = now;
    }
    if ('metrics' in progress) {
      log ??= new TrainingLog(folder);
      log.append(timedLine(progress.metrics, clock));
    }
    const line = progressLine(run, progress, clock);
    if (progress.kind === 'update') display.show(line, Math.min(1, progress.update.steps / run.steps));
    else console.error(line);
  };

  const jobs =
    agentsOf(environment).learnsVariants && algorithm === 'distill'
      ? await openJobs({ threads, queue })
      : undefined;
  try {
    const trained = await trainPolicy(run, { threads, jobs, start, signal, onProgress: keepAndShow });
    const isTaught = resumed === undefined && algorithm === 'distill' && lessons !== undefined;
    if (isTaught && lessonsGiven < lessons.episodes) {
      console.error(`stopped after ${lessonsGiven} of ${lessons.episodes} lessons; train --resume goes on`);
    }
    const paths = policyPaths(folder, algorithm);
    writePolicy(paths, trained.files);
    const drawn = log?.finish(learningCurveTitle(run));
    return {
      /** Windows played. */
      steps: trained.steps,
      /** Mean return of an episode, as training last saw it; `null` when no episode ended. */
      final_return: log === undefined ? trained.finalReturn : finalReturn(log.lines),
      files: { ...paths, ...drawn },
    };
  } finally {
    display.end();
    await jobs?.close();
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

function writeSeed(run: TrainingRun, { steps, finalReturn, metrics, files }: TrainedRun, folder: string) {
  mkdirSync(folder, { recursive: true });
  const paths = policyPaths(folder, run.algorithm);
  const log = metrics.length > 0 ? new TrainingLog(folder) : undefined;
  for (const line of metrics) log?.append(line);
  const drawn = log?.finish(learningCurveTitle(run));
  writePolicy(paths, files);
  return { seed: run.seed, steps, final_return: finalReturn, files: { ...paths, ...drawn } };
}

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

/** Paths of a policy in its folder. */
type PolicyPaths = Readonly<Record<keyof TrainedRun['files'], string>> | { readonly policy: string };

function policyPaths(folder: string, algorithm: Algorithm): PolicyPaths {
  const policy = join(folder, 'policy.safetensors');
  if (algorithm === 'rollout') return { policy };
  if (!isNetworkAlgorithm(algorithm)) return { policy: join(folder, 'policy.json') };
  return {
    policy,
    onnx: join(folder, 'policy.onnx'),
    checkpoint: checkpointPath(folder),
  };
}

function checkpointPath(folder: string): string {
  return join(folder, 'checkpoint.safetensors');
}

/** Writes the files of a policy; the policy itself comes last, so that where it is, everything is. */
function writePolicy(paths: PolicyPaths, files: TrainedRun['files']): void {
  const pathOf: Readonly<Record<string, string>> = paths;
  for (const [kind, file] of Object.entries(files)) replaceFile(pathOf[kind], file);
}

/** Records a training: JSON lines as it goes, the learning curve at the end. */
export class TrainingLog {
  readonly lines: MetricsLine[] = [];
  readonly #folder: string;
  readonly #metrics: string;

  /** @param keepUntil steps up to which the metrics of an earlier part of the run in this folder are kept */
  constructor(folder: string, keepUntil = 0) {
    this.#folder = folder;
    this.#metrics = join(folder, 'metrics.jsonl');
    if (keepUntil > 0) this.lines.push(...readLines(this.#metrics, keepUntil));
    replaceFile(this.#metrics, this.lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
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

/** Lines of the metrics up to some steps; none where the run goes on in another folder. */
function readLines(path: string, until: number): MetricsLine[] {
  if (!existsSync(path)) return [];
  const lines = readFileSync(path, 'utf8').split('\n').slice(0, -1);
  return lines.map((line) => JSON.parse(line) as MetricsLine).filter(({ steps }) => steps <= until);
}

const TITLES: Readonly<Record<Algorithm, string>> = {
  ppo: 'PPO',
  distill: 'PPO after distillation',
  rollout: 'Rollouts',
  cem: 'Cross-entropy search',
  static: 'Search of a constant',
};

/** Title of the learning curve of a run. */
function learningCurveTitle({ algorithm, task, seed }: TrainingRun): string {
  return `${TITLES[algorithm]} on ${task}, seed ${seed}`;
}
