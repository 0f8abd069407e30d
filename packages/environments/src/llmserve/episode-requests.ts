import { RandomStream, TICKS_PER_S } from '@servegym/simulator';
import { type SEED_SPLITS, splitOfSeed } from '../scenario.ts';
import { drawLogNormal, REQUEST_CLASSES } from '../tasks.ts';
import type { ServeTrace } from '../traces.ts';
import {
  drawPrefixes,
  drawWorkload,
  type FittedWorkload,
  type PromptPrefixes,
} from '../workload/fitted-workload.ts';
import type { Phase, ServeTask } from './serve-task.ts';

/**
 * The requests of an episode, sorted into windows, with what else a window brings: its phase and the memory of tenants.
 * Request i is (`arrivalTicks[i]`, `inputTokens[i]`, ...).
 */
export interface EpisodeRequests {
  /** Ticks from the start of the episode, ascending. */
  readonly arrivalTicks: Float64Array;
  readonly inputTokens: Int32Array;
  readonly outputTokens: Int32Array;
  /** Index into `REQUEST_CLASSES`. */
  readonly classes: Uint8Array;
  /** Requests of window w are `windowStarts[w]` .. `windowStarts[w + 1] - 1`. */
  readonly windowStarts: Int32Array;
  /** Index into the task's phases, for each window. */
  readonly phases: Uint8Array;
  /** Memory of co-located tenants on each GPU, GiB, for each window. */
  readonly tenantGiB: Float64Array;
  /** Prefixes that prompts share, where they are known: the server then caches prefixes. */
  readonly prefixes?: PromptPrefixes;
}

/**
 * Draws the traffic of an episode. Phases, arrivals, lengths, classes and tenants have a random stream each, so that
 * one draw more in one does not shift another. A task with a `source` takes its requests from there.
 */
export function drawRequests(task: ServeTask, seed: number): EpisodeRequests {
  const schedule = drawPhases(task, seed);
  const requests =
    task.source === undefined ? phaseRequests(task, seed, schedule) : sourceRequests(task, seed, task.source);
  return episodeRequests(task, requests, schedule);
}

/** The requests sorted into windows, with what the schedule says of each. */
export function episodeRequests(
  task: ServeTask,
  requests: RequestList,
  schedule: Pick<ReturnType<typeof drawPhases>, 'phases' | 'tenantGiB'>,
): EpisodeRequests {
  return {
    arrivalTicks: Float64Array.from(requests.arrivalSeconds).map((at) => Math.round(at * TICKS_PER_S)),
    inputTokens: Int32Array.from(requests.inputTokens),
    outputTokens: Int32Array.from(requests.outputTokens),
    classes: Uint8Array.from(requests.classes),
    windowStarts: windowStarts(task, requests.arrivalSeconds),
    phases: schedule.phases,
    tenantGiB: schedule.tenantGiB,
    ...(requests.prefixes && { prefixes: requests.prefixes }),
  };
}

function windowStarts({ windows, windowSeconds }: ServeTask, arrivalSeconds: readonly number[]): Int32Array {
  const starts = new Int32Array(windows + 1);
  let next = 0;
  for (let w = 0; w < windows; w++) {
    starts[w] = next;
    while (next < arrivalSeconds.length && arrivalSeconds[next] < (w + 1) * windowSeconds) next++;
  }
  starts[windows] = arrivalSeconds.length;
  return starts;
}

/** Requests as a task's phases describe them. */
export function phaseRequests(
  task: ServeTask,
  seed: number,
  schedule: ReturnType<typeof drawPhases>,
): RequestList {
  const { windows, windowSeconds } = task;
  const arrivals = new RandomStream(seed, 'arrivals');
  const lengths = new RandomStream(seed, 'lengths');
  const classDraws = new RandomStream(seed, 'classes');
  const arrivalSeconds: number[] = [];
  const inputTokens: number[] = [];
  const outputTokens: number[] = [];
  const classes: number[] = [];
  for (let w = 0; w < windows; w++) {
    const phase = task.phases[schedule.phases[w]];
    const rate = schedule.rates[w];
    const shares = classShares(phase.traffic);
    // A Poisson process is memoryless: it may start anew in each window.
    for (let at = arrivals.exponential(1 / rate); at < windowSeconds; at += arrivals.exponential(1 / rate)) {
      const kind = classDraws.choose(shares);
      const traffic = phase.traffic[REQUEST_CLASSES[kind]];
      if (traffic === undefined) continue;
      arrivalSeconds.push(w * windowSeconds + at);
      inputTokens.push(Math.round(drawLogNormal(lengths, traffic.prompt)));
      outputTokens.push(Math.round(drawLogNormal(lengths, traffic.output)));
      classes.push(kind);
    }
  }
  return { arrivalSeconds, inputTokens, outputTokens, classes };
}

/** Draws the order of the phases, how long each lasts, its rate and its tenants. */
function drawPhases(task: ServeTask, seed: number) {
  const order = new RandomStream(seed, 'phases');
  const bursts = new RandomStream(seed, 'bursts');
  const tenants = new RandomStream(seed, 'tenants');
  /** Index into the task's phases, of each window. */
  const phases = new Uint8Array(task.windows);
  /** Arrivals a second. */
  const rates = new Float64Array(task.windows);
  /** Memory of co-located tenants on each GPU, GiB. */
  const tenantGiB = new Float64Array(task.windows);
  let current = 0;
  for (let w = 0; w < task.windows; ) {
    const phase = task.phases[current];
    const length = order.integer(phase.windows[0], phase.windows[1]);
    const rate = within(order.uniform(), phase.arrivalsPerSecond);
    const tenant = within(tenants.uniform(), phase.tenantGiB);
    for (const end = Math.min(w + length, task.windows); w < end; w++) {
      phases[w] = current;
      // The mean of a log-normal factor is 1 when mu is -sigma^2 / 2.
      const sigma = phase.burstiness;
      rates[w] = rate * bursts.lognormal((-sigma * sigma) / 2, sigma);
      tenantGiB[w] = tenant;
    }
    if (task.phases.length === 1) continue;
    current = order.choose(task.phases.map(({ weight }, i) => (i === current ? 0 : weight)));
  }
  return { phases, rates, tenantGiB };
}

function within(share: number, [low, high]: readonly [number, number]): number {
  return low + share * (high - low);
}

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
function sourceRequests(task: ServeTask, seed: number, source: RequestSource): RequestList {
  const classes = new RandomStream(seed, 'classes');
  const shares = classShares(task.phases[0].traffic);
  const drawClass = () => classes.choose(shares);
  const { requests } = source;
  if (requests.kind === 'trace') return traceRequests(task, seed, source, requests.trace, drawClass);
  const { model } = requests;
  const drawn = drawWorkload(model, seed, task.windows * task.windowSeconds, source);
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
  // -1 where the stretch begins behind the last arrival.
  let i = trace.arrivalMs.findIndex((at) => at >= startMs);
  for (;;) {
    if (i === trace.arrivalMs.length || i < 0) {
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

/** A trace of at least this many episodes is divided by time between the splits. */
const EPISODES_TO_DIVIDE = 5;
/** Part of a long trace that each split plays, as shares of its length. The parts do not overlap. */
const PARTS = {
  train: [0, 0.6],
  validation: [0.6, 0.8],
  test: [0.8, 1],
} as const satisfies Record<keyof typeof SEED_SPLITS, readonly [number, number]>;

/**
 * The stretch of a trace that a seed plays. A trace that is no longer than the episode is played from its start, and
 * over again until the episode ends; between the last arrival and the first of the next round lies the mean gap. Of a
 * longer one the seed draws the start; of one as long as five episodes, within the part of the seed's split: the first 60 %
 * for training, the next 20 % for validation, the rest for tests. `episodeMs` is in the trace's own time; after `periodMs` the
 * trace begins anew.
 */
export function traceStretch({ arrivalMs }: ServeTrace, seed: number, episodeMs: number) {
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
function classShares(traffic: Phase['traffic']): number[] {
  return REQUEST_CLASSES.map((name) => traffic[name]?.share ?? 0);
}
