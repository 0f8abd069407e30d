import {
  generateWorkload,
  SEED_SPLITS,
  SERVE_TASKS,
  type ServeAction,
  ServeEpisode,
  type TaskId,
  type Workload,
} from '@servegym/environments';
import { traceSeed } from '../learning/trace-schedule.ts';
import { decodeServeAction, encodeServeAction, SERVE_HEAD_SIZES } from './serve-action-codec.ts';

/** Traces that every value of a knob is tried on, and those that the best of them are told apart on. */
const TRACES = { few: 4, many: 24 };
/** Values of a knob that are told apart on many traces. */
const FINALISTS = 3;

export interface TuneConstantOptions {
  readonly taskId: TaskId;
  /** Decides which traces of the training split are played. */
  readonly seed: number;
  /** Default 4 and 24. */
  readonly traces?: typeof TRACES;
  /** Ends the search after the knob at hand. */
  readonly signal?: AbortSignal;
  /** Called after each knob with the configuration that the search has come to. */
  readonly onProgress?: (progress: TunedConstant) => void;
}

export interface TunedConstant {
  readonly action: ServeAction;
  /** Of an episode, over the traces. */
  readonly meanReturn: number;
  /** Episodes played so far. */
  readonly episodes: number;
}

/**
 * Looks for the configuration that earns most when it is kept for whole episodes of the training split: one knob at a
 * time, all of its bins on a few traces and the best of them on many, until no knob changes any more. Starts from the
 * default and from a server set for throughput, and answers the better end.
 */
export async function tuneConstant(options: TuneConstantOptions): Promise<TunedConstant> {
  const { taskId, seed, traces = TRACES, signal } = options;
  const { defaultAction } = SERVE_TASKS[taskId];
  const throughputAction = { ...defaultAction, batch_cap: 256, quantization_tier: 'INT8' } as const;
  const returns = new ConstantReturns(taskId, seed, traces.many);
  const ends: TunedConstant[] = [];
  for (const start of [defaultAction, throughputAction]) {
    if (!signal?.aborted) ends.push(await climb(encodeServeAction(start), returns, options));
  }
  return { ...ends.sort((a, b) => b.meanReturn - a.meanReturn)[0]!, episodes: returns.episodes };
}

async function climb(
  start: readonly number[],
  returns: ConstantReturns,
  { traces = TRACES, signal, onProgress }: TuneConstantOptions,
): Promise<TunedConstant> {
  const knobs = SERVE_HEAD_SIZES.length;
  let bins = start;
  let reached: TunedConstant;
  let settled = 0;
  let knob = 0;
  do {
    const better = tuneKnob(returns, bins, knob, traces);
    settled = better[knob] === bins[knob] ? settled + 1 : 1;
    bins = better;
    knob = (knob + 1) % knobs;
    const meanReturn = returns.mean(bins, traces.many);
    reached = { action: decodeServeAction(bins), meanReturn, episodes: returns.episodes };
    onProgress?.(reached);
    // Let progress be shown and signals be heard.
    await new Promise((resolve) => setImmediate(resolve));
  } while (settled < knobs && !signal?.aborted);
  return reached;
}

/** The bins with one knob at its best value and the others as they are. */
function tuneKnob(
  returns: ConstantReturns,
  bins: readonly number[],
  knob: number,
  { few, many }: typeof TRACES,
): readonly number[] {
  const byMeanOver = (traces: number) => (a: readonly number[], b: readonly number[]) =>
    returns.mean(b, traces) - returns.mean(a, traces);
  const candidates = Array.from({ length: SERVE_HEAD_SIZES[knob]! }, (_, bin) => bins.with(knob, bin));
  const finalists = candidates.sort(byMeanOver(few)).slice(0, FINALISTS);
  return [bins, ...finalists].sort(byMeanOver(many))[0]!;
}

/** Returns of constant configurations, each played once on each trace. */
class ConstantReturns {
  episodes = 0;
  readonly #taskId: TaskId;
  readonly #traces: readonly { readonly seed: number; readonly workload: Workload }[];
  readonly #known = new Map<string, number[]>();

  constructor(taskId: TaskId, seed: number, traces: number) {
    this.#taskId = taskId;
    const schedule = { seed, groupSize: 1, traces: SEED_SPLITS.train };
    this.#traces = Array.from({ length: traces }, (_, episode) => {
      const trace = traceSeed(schedule, 0, episode);
      return { seed: trace, workload: generateWorkload(SERVE_TASKS[taskId], trace) };
    });
  }

  /** Mean over the first `count` traces. */
  mean(bins: readonly number[], count: number): number {
    const key = bins.join();
    const known = this.#known.get(key) ?? [];
    this.#known.set(key, known);
    while (known.length < count) known.push(this.#play(decodeServeAction(bins), known.length));
    let sum = 0;
    for (let trace = 0; trace < count; trace++) sum += known[trace]!;
    return sum / count;
  }

  #play(action: ServeAction, trace: number): number {
    const { seed, workload } = this.#traces[trace]!;
    const episode = new ServeEpisode(SERVE_TASKS[this.#taskId], seed, { workload });
    while (!episode.done) episode.step(action);
    this.episodes++;
    return episode.totals.reward;
  }
}
