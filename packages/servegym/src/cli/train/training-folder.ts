import { appendFileSync, existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  type Algorithm,
  eventFileHeader,
  isNetworkAlgorithm,
  type MetricsLine,
  scalarRecord,
  startRecord,
  type TrainedRun,
  type TrainingRun,
} from '@servegym/agents';
import { canWriteReports, pngRenderer, type Report, reportPage, reportPlot } from '../output/report-page.ts';

/** Outcome of a training. */
export interface TrainingReport {
  /** Windows played. */
  readonly steps: number;
  /** Mean return of an episode, as training last saw it; `null` when no episode ended. */
  readonly final_return: number | null;
  readonly files: { readonly policy: string; readonly [kind: string]: string | undefined };
}

/** Paths of a policy in its folder. */
type PolicyPaths = Readonly<Record<keyof TrainedRun['files'], string>> | { readonly policy: string };

export function policyPaths(folder: string, algorithm: Algorithm): PolicyPaths {
  if (!isNetworkAlgorithm(algorithm)) return { policy: join(folder, 'policy.json') };
  return {
    policy: join(folder, 'policy.safetensors'),
    onnx: join(folder, 'policy.onnx'),
    checkpoint: checkpointPath(folder),
  };
}

export function checkpointPath(folder: string): string {
  return join(folder, 'checkpoint.safetensors');
}

/** Writes the files of a policy; the policy itself comes last, so that where it is, everything is. */
export function writePolicy(paths: PolicyPaths, files: TrainedRun['files']): void {
  const pathOf: Readonly<Record<string, string>> = paths;
  for (const [kind, file] of Object.entries(files)) replaceFile(pathOf[kind], file);
}

/** Writes a file; a crash leaves the one that was there. */
export function replaceFile(path: string, bytes: Uint8Array): void {
  writeFileSync(`${path}.part`, bytes);
  renameSync(`${path}.part`, path);
}

/** Records a training: JSON lines and a TensorBoard event file as it goes, the learning curve at the end. */
export class TrainingLog {
  readonly lines: MetricsLine[] = [];
  readonly #folder: string;
  readonly #metrics: string;
  readonly #events: string;

  /** @param keepUntil steps up to which the metrics of an earlier part of the run in this folder are kept */
  constructor(folder: string, keepUntil = 0) {
    this.#folder = folder;
    this.#metrics = join(folder, 'metrics.jsonl');
    if (keepUntil > 0) this.lines.push(...readLines(this.#metrics, keepUntil));
    writeFileSync(this.#metrics, this.lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
    // TensorBoard looks for this in the name of a file.
    this.#events = join(folder, `events.out.tfevents.${Date.now()}.servegym`);
    const wallTime = Date.now() / 1000;
    writeFileSync(this.#events, eventFileHeader(wallTime));
    appendFileSync(this.#events, startRecord({ wallTime, step: keepUntil + 1 }));
  }

  append(line: MetricsLine): void {
    this.lines.push(line);
    appendFileSync(this.#metrics, `${JSON.stringify(line)}\n`);
    this.#appendEvent(line);
  }

  /**
   * Draws the curve. Answers where everything stands. There is no `picture` where PNG cannot be drawn, and nothing is
   * drawn where the console is not built.
   */
  finish(title: string): Readonly<Record<string, string>> {
    const files = { metrics: this.#metrics, events: this.#events };
    if (!canWriteReports()) {
      console.error('note: no learning curve, because the console is not built');
      return files;
    }
    const report: Report = { kind: 'training', title, lead: '', result: this.lines };
    const svg = reportPlot(report);
    const drawn = (ending: string, content: string | Uint8Array) => {
      const path = join(this.#folder, `learning-curve.${ending}`);
      writeFileSync(path, content);
      return path;
    };
    const pages = { ...files, curve: drawn('svg', svg), page: drawn('html', reportPage(report)) };
    const renderPng = pngRenderer();
    return renderPng ? { ...pages, picture: drawn('png', renderPng(svg)) } : pages;
  }

  #appendEvent({ steps, ...metrics }: MetricsLine): void {
    const scalars = Object.fromEntries(
      Object.entries(metrics).flatMap(([name, value]) => (value === null ? [] : [[`train/${name}`, value]])),
    );
    appendFileSync(this.#events, scalarRecord({ wallTime: Date.now() / 1000, step: steps, scalars }));
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
  cem: 'Cross-entropy search',
  static: 'Search of a constant',
};

/** Title of the learning curve of a run. */
export function learningCurveTitle({ algorithm, task, seed }: TrainingRun): string {
  return `${TITLES[algorithm]} on ${task}, seed ${seed}`;
}
