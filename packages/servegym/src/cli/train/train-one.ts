import { appendFileSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import {
  type Algorithm,
  type MetricsLine,
  type PpoUpdate,
  trainSeeds as submitSeeds,
  type TrainedRun,
  type TrainingProgress,
  type TrainingRun,
  trainPolicy,
} from '@servegym/agents';
import type { JobEngine } from '@servegym/jobs';
import { type Chart, chartSvg, type Section } from '@servegym/operators/report';
import { counted } from '@servegym/simulator';
import { mean, sampleDeviation } from '@servegym/simulator/statistics';
import { replaceFile } from '../files.ts';
import { type Form, table } from '../output/print-result.ts';
import { ProgressDisplay } from '../output/progress.ts';
import { canWriteReports, reportPage } from '../output/report-page.ts';

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

export type TrainingReport = Awaited<ReturnType<typeof trainOne>>;

/** Trains a policy. Shows the progress, and writes metrics and the policy into a folder that exists. */
export async function trainOne(
  run: TrainingRun,
  folder: string,
  { threads, signal }: { readonly threads: number; readonly signal: AbortSignal },
) {
  const log = new TrainingLog(folder);
  const started = performance.now();
  const display = new ProgressDisplay();
  const onProgress = (progress: TrainingProgress) => {
    const wallSeconds = (performance.now() - started) / 1000;
    if ('metrics' in progress) log.append(timedLine(progress.metrics, wallSeconds));
    const line = progressLine(run, progress, wallSeconds);
    if (progress.kind === 'update') display.show(line, Math.min(1, progress.update.steps / run.steps));
    else console.error(line);
  };
  try {
    return log.finish(run, await trainPolicy(run, { threads, signal, onProgress }));
  } finally {
    display.end();
  }
}

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
    onTrained(seed, trained) {
      const own = join(folder, `seed-${seed}`);
      mkdirSync(own, { recursive: true });
      const log = new TrainingLog(own);
      for (const line of trained.metrics) log.append(line);
      reports.set(seed, { seed, ...log.finish({ ...run, seed }, trained) });
    },
  });
  return seeds.map((seed) => reports.get(seed)!);
}

/** A line of `metrics.jsonl` with the time that it took since the start. */
export function timedLine({ steps, ...figures }: MetricsLine, wallSeconds: number): MetricsLine {
  return { steps, wall_s: wallSeconds, steps_per_s: steps / wallSeconds, ...figures };
}

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
function updateLine(planned: number, update: PpoUpdate, wallSeconds: number): string {
  const { steps, meanReturn, approxKl, explainedVariance, entropy } = update;
  const speed = steps / wallSeconds;
  const left = Math.max(0, planned - steps) / speed;
  return [
    `${Math.min(100, Math.floor((100 * steps) / planned))} %`.padStart(5),
    `${steps.toLocaleString('en-US')} steps`,
    `${Math.round(speed).toLocaleString('en-US')}/s`,
    `return ${meanReturn?.toFixed(1) ?? '-'}`,
    `KL ${approxKl.toFixed(4)}`,
    `EV ${explainedVariance.toFixed(2)}`,
    `entropy ${entropy.toFixed(2)}`,
    `${Math.ceil(left)} s left`,
  ].join('  ');
}

type SeedsRun = Pick<TrainingRun, 'environment' | 'task' | 'algorithm'> &
  Readonly<{ folder: string; wallS: number; reports: readonly SeedReport[] }>;

/** The return of each seed as training last saw it, and what they have in common. */
export const seedsForm: Form<SeedsRun> = {
  json: ({ environment, task, algorithm, folder, wallS, reports }) => ({
    ...{ environment, task, algorithm, folder, wall_s: wallS },
    ...{ final_return: spread(reports), runs: reports },
  }),
  text({ folder, wallS, reports }) {
    const shown = (value: number | null) => value?.toFixed(1) ?? '-';
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

const TITLES: Readonly<Record<Algorithm, string>> = {
  ppo: 'PPO',
  rollout: 'Rollouts',
  cem: 'Cross-entropy search',
  static: 'Search of a constant',
};

/** Records a training in a folder: JSON lines as it goes, the learning curve and the policy at the end. */
export class TrainingLog {
  readonly #lines: MetricsLine[] = [];
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  append(line: MetricsLine): void {
    if (this.#lines.length === 0) this.#write('metrics.jsonl', '');
    this.#lines.push(line);
    appendFileSync(join(this.#folder, 'metrics.jsonl'), `${JSON.stringify(line)}\n`);
  }

  /** Windows played, mean return as training last saw it, and paths. The policy comes last: where it is, everything is. */
  finish(
    { algorithm, task, seed }: TrainingRun,
    { steps, finalReturn, policy }: Omit<TrainedRun, 'metrics'>,
  ) {
    const drawn = this.#lines.length > 0 && this.#draw(`${TITLES[algorithm]} on ${task}, seed ${seed}`);
    const isNetwork = algorithm === 'ppo' || algorithm === 'rollout';
    const file = this.#write(`policy.${isNetwork ? 'safetensors' : 'json'}`, policy);
    const files: Readonly<Record<string, string>> & { readonly policy: string } = { policy: file, ...drawn };
    return { steps, final_return: finalReturn, files };
  }

  /** Draws the curve, and writes its page, unless the console is not built. */
  #draw(title: string): Readonly<Record<string, string>> {
    const svg = chartSvg(metricChart(this.#lines, 'mean_return'), title);
    const curve = this.#write('learning-curve.svg', svg);
    const files = { metrics: join(this.#folder, 'metrics.jsonl'), curve };
    if (!canWriteReports()) {
      console.error('note: no page of the learning curve, because the console is not built');
      return files;
    }
    const page = reportPage({ title, lead: '', sections: metricSections(this.#lines) });
    return { ...files, page: this.#write('learning-curve.html', page) };
  }

  #write(name: string, content: string | Uint8Array): string {
    const path = join(this.#folder, name);
    replaceFile(path, content);
    return path;
  }
}
