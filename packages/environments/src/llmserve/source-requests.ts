import { RandomStream } from '@servegym/simulator';
import { type SEED_SPLITS, splitOfSeed } from '../scenario.ts';
import { REQUEST_CLASSES } from '../tasks.ts';
import type { ServeTrace } from '../traces.ts';
import type { FittedWorkload } from '../workload/fitted-workload.ts';
import { drawPrefixes, drawWorkload, type PromptPrefixes } from '../workload/fitted-workload.ts';
import type { Phase, ServeTask } from './serve-task.ts';

/** Requests in order of arrival, before they are sorted into windows. */
export interface RequestList {
  /** s from the start of the episode. */
  readonly arrivalSeconds: readonly number[];
  readonly inputTokens: readonly number[];
  readonly outputTokens: readonly number[];
  /** Index into `REQUEST_CLASSES`. */
  readonly classes: readonly number[];
  readonly prefixes?: PromptPrefixes;
}

/** Requests that come from elsewhere than a task's phases. */
export interface RequestSource {
  /** Name of the phase in reports. */
  readonly name: string;
  readonly requests:
    | { readonly kind: 'workload'; readonly model: FittedWorkload }
    | { readonly kind: 'trace'; readonly trace: ServeTrace };
  /** Arrivals come this many times as fast as at the source. */
  readonly rateScale: number;
  /** Prompts are this many times as long as at the source. */
  readonly promptScale: number;
}

/** Requests of an episode that come from a fitted workload or a trace. Deterministic by seed. */
export function sourceRequests(task: ServeTask, seed: number, source: RequestSource): RequestList {
  const classes = new RandomStream(seed, 'classes');
  const shares = classShares(task.phases[0].traffic);
  const drawClass = () => classes.choose(shares);
  const { requests } = source;
  return requests.kind === 'workload'
    ? modelRequests(task, seed, source, requests.model, drawClass)
    : traceRequests(task, seed, source, requests.trace, drawClass);
}

function modelRequests(
  { windows, windowSeconds }: ServeTask,
  seed: number,
  source: RequestSource,
  model: FittedWorkload,
  drawClass: () => number,
): RequestList {
  const drawn = drawWorkload(model, seed, windows * windowSeconds, source);
  return {
    ...drawn,
    classes: drawn.inputTokens.map(drawClass),
    ...(model.prefixes && {
      prefixes: drawPrefixes(model.prefixes, seed, drawn.arrivalSeconds, drawn.inputTokens),
    }),
  };
}

function traceRequests(
  { windows, windowSeconds }: ServeTask,
  seed: number,
  { rateScale, promptScale }: RequestSource,
  trace: ServeTrace,
  drawClass: () => number,
): RequestList {
  const episodeSeconds = windows * windowSeconds;
  const { startMs, periodMs } = traceStretch(trace, seed, episodeSeconds * 1000 * rateScale);
  const arrivalSeconds: number[] = [];
  const inputTokens: number[] = [];
  const outputTokens: number[] = [];
  const classes: number[] = [];
  const ids: number[] = [];
  const offsets: number[] = [0];
  const { prefixBlocks } = trace;
  let round = 0;
  let i = firstFrom(trace.arrivalMs, startMs);
  for (;;) {
    if (i === trace.arrivalMs.length) {
      round++;
      i = 0;
    }
    const offset = round === 0 ? 0 : round * periodMs;
    const at = (offset + trace.arrivalMs[i] - startMs) / 1000 / rateScale;
    if (!(at < episodeSeconds)) break;
    arrivalSeconds.push(at);
    inputTokens.push(Math.max(1, Math.round(trace.inputTokens[i] * promptScale)));
    outputTokens.push(trace.outputTokens[i]);
    classes.push(trace.classes === undefined ? drawClass() : trace.classes[i]);
    if (prefixBlocks) {
      for (let at = prefixBlocks.offsets[i]; at < prefixBlocks.offsets[i + 1]; at++) {
        ids.push(prefixBlocks.ids[at]);
      }
      offsets.push(ids.length);
    }
    i++;
  }
  return {
    arrivalSeconds,
    inputTokens,
    outputTokens,
    classes,
    ...(prefixBlocks && {
      prefixes: {
        chunkTokens: prefixBlocks.blockTokens,
        ids: Float64Array.from(ids),
        offsets: Int32Array.from(offsets),
      },
    }),
  };
}

/** Index of the first arrival that is not before `startMs`. */
function firstFrom(arrivalMs: Float64Array, startMs: number): number {
  let low = 0;
  let high = arrivalMs.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (arrivalMs[middle] < startMs) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** A trace of at least this many episodes is divided by time between the splits. */
const EPISODES_TO_DIVIDE = 5;
/** Part of a long trace that each split plays, as shares of its length. The parts do not overlap. */
const PARTS = {
  train: [0, 0.6],
  validation: [0.6, 0.8],
  test: [0.8, 1],
} as const satisfies Record<keyof typeof SEED_SPLITS, readonly [number, number]>;

/** Start of an episode in a trace, and the time after which the trace begins anew. */
interface TraceStretch {
  readonly startMs: number;
  readonly periodMs: number;
}

/**
 * The stretch of a trace that a seed plays. A trace that is no longer than the episode is played from its start, and
 * over again until the episode ends; between the last arrival and the first of the next round lies the mean gap. Of a
 * longer one the seed draws the start; of one as long as five episodes, within the part of the seed's split: the first 60 %
 * for training, the next 20 % for validation, the rest for tests. `episodeMs` is in the trace's own time.
 */
export function traceStretch({ arrivalMs }: ServeTrace, seed: number, episodeMs: number): TraceStretch {
  const last = arrivalMs[arrivalMs.length - 1];
  const gap = arrivalMs.length > 1 ? last / (arrivalMs.length - 1) : 0;
  // A trace of one moment is played once.
  const periodMs = last + gap === 0 ? Number.POSITIVE_INFINITY : last + gap;
  if (periodMs <= episodeMs || periodMs === Number.POSITIVE_INFINITY) return { startMs: 0, periodMs };
  const split = splitOfSeed(seed);
  const [from, to] =
    split !== undefined && periodMs >= EPISODES_TO_DIVIDE * episodeMs ? PARTS[split] : ([0, 1] as const);
  const room = (to - from) * periodMs - episodeMs;
  const draw = new RandomStream(seed, 'stretch').uniform();
  return { startMs: from * periodMs + Math.max(0, room) * draw, periodMs };
}

/** Shares of the classes in a phase, in the order of `REQUEST_CLASSES`. */
export function classShares(traffic: Phase['traffic']): number[] {
  return REQUEST_CLASSES.map((name) => traffic[name]?.share ?? 0);
}
