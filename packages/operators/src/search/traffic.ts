import { sliceRequests, type Trace } from '@servegym/simulator';
import { TuningError } from './slo.ts';

/** Requests to tune on, in blocks that are the units of its statistics. */
export interface Traffic {
  readonly trace: Trace;
  /** Priority class of each request, 0 is the most urgent, where they have any. */
  readonly priorities?: Uint8Array;
  /**
   * Requests, or conversations where the trace has them, that are kept in flight at a load of 1, instead of the trace's
   * arrivals.
   */
  readonly concurrency?: number;
  /** First request of each block, and the end of the last. */
  readonly blockStarts: readonly number[];
}

/** Traffic to search on, and traffic that the search never sees. */
export interface SplitTraffic {
  readonly search: Traffic;
  readonly heldOut: Traffic;
}

/** Fewer give no 99th percentile worth the name. */
const FEWEST_REQUESTS = 200;
const BLOCKS = 40;

/**
 * Cuts a trace into blocks of equally many requests. The even ones are searched on, the odd ones are held out. Of a
 * trace with more than `most` requests the blocks are shorter than their share, and lie evenly over it.
 *
 * @param priorities Priority class of each request.
 * @throws TuningError when there are too few requests.
 */
export function splitTrace(trace: Trace, most: number, priorities?: Uint8Array): SplitTraffic {
  const requests = trace.arrivalMs.length;
  if (requests < FEWEST_REQUESTS) {
    throw new TuningError(
      'TOO_FEW_REQUESTS',
      `${trace.source}: expected at least ${FEWEST_REQUESTS} requests to search on, got ${requests}`,
    );
  }
  const size = Math.floor(Math.min(requests, most) / BLOCKS);
  const starts = Array.from({ length: BLOCKS }, (_, b) => Math.floor((b * requests) / BLOCKS));
  const blocks = starts.map((start) => sliceTrace({ trace, priorities }, start, start + size));
  return {
    search: joinBlocks(blocks.filter((_, b) => b % 2 === 0)),
    heldOut: joinBlocks(blocks.filter((_, b) => b % 2 === 1)),
  };
}

/** A stretch of a trace. */
type Block = ReturnType<typeof sliceTrace>;

/** The requests `start` .. `end - 1`, and the time until the one after them. */
export function sliceTrace({ trace, priorities }: Omit<Traffic, 'blockStarts'>, start: number, end: number) {
  const { arrivalMs } = trace;
  const from = arrivalMs[start];
  const gap = (arrivalMs[end - 1] - from) / Math.max(1, end - 1 - start);
  const slice = sliceRequests(trace, start, end);
  return {
    ...(priorities && { priorities: priorities.slice(start, end) }),
    durationMs: (arrivalMs[end] ?? arrivalMs[end - 1] + gap) - from,
    trace: { ...slice, arrivalMs: slice.arrivalMs.map((ms) => ms - from) },
  };
}

/** Blocks one after the other. */
export function joinBlocks(blocks: readonly Block[]): Traffic {
  const requests = blocks.reduce((sum, { trace }) => sum + trace.arrivalMs.length, 0);
  const arrivalMs = new Float64Array(requests);
  const inputTokens = new Int32Array(requests);
  const outputTokens = new Int32Array(requests);
  const first = blocks[0].trace;
  const offsets = new Int32Array(requests + 1);
  const ids: number[] = [];
  const followUps = first.followUps && {
    previous: new Int32Array(requests),
    thinkMs: new Float64Array(requests),
  };
  const priorities = blocks[0].priorities && new Uint8Array(requests);
  const adapters = first.adapters && { ...first.adapters, of: new Int32Array(requests) };
  const blockStarts = [0];
  let at = 0;
  let now = 0;
  for (const { trace, durationMs, priorities: own } of blocks) {
    const { prefixBlocks } = trace;
    for (const [i, ms] of trace.arrivalMs.entries()) {
      arrivalMs[at + i] = now + ms;
      offsets[at + i + 1] = ids.length + (prefixBlocks?.offsets[i + 1] ?? 0);
    }
    inputTokens.set(trace.inputTokens, at);
    outputTokens.set(trace.outputTokens, at);
    if (prefixBlocks !== undefined) for (const id of prefixBlocks.ids) ids.push(id);
    if (own !== undefined) priorities?.set(own, at);
    adapters?.of.set(trace.adapters!.of, at);
    const base = at;
    followUps?.previous.set(
      trace.followUps!.previous.map((previous) => (previous === -1 ? -1 : base + previous)),
      base,
    );
    followUps?.thinkMs.set(trace.followUps!.thinkMs, base);
    at += trace.arrivalMs.length;
    now += durationMs;
    blockStarts.push(at);
  }
  return {
    blockStarts,
    ...(priorities && { priorities }),
    trace: {
      source: first.source,
      ...{ arrivalMs, inputTokens, outputTokens },
      ...(adapters && { adapters }),
      ...(first.prefixBlocks && {
        prefixBlocks: { ...first.prefixBlocks, ids: Float64Array.from(ids), offsets },
      }),
      ...(followUps && { followUps }),
    },
  };
}

/** Prompt tokens that an output token counts as, where demands are compared: a choice. */
const OUTPUT_WEIGHT = 4;

/**
 * Some of the blocks, in their order: at even steps through the blocks by their demand a second, up to the busiest. Blocks that are even
 * over time miss the busy ones, which decide what is sustained; with requests in flight all are as busy, and they are even over time.
 */
export function someBlocks(traffic: Traffic, count: number): Traffic {
  const { blockStarts, concurrency } = traffic;
  const blocks = blockStarts.length - 1;
  if (count >= blocks) return traffic;
  const slices = Array.from({ length: blocks }, (_, b) =>
    sliceTrace(traffic, blockStarts[b], blockStarts[b + 1]),
  );
  const order = slices.map((_, b) => b);
  if (concurrency === undefined) {
    const demands = slices.map(demandOf);
    order.sort((a, b) => demands[a] - demands[b]);
  }
  const chosen = Array.from({ length: count }, (_, i) => order[Math.floor(((i + 1) * (blocks - 1)) / count)]);
  const joined = joinBlocks(chosen.sort((a, b) => a - b).map((b) => slices[b]));
  return { ...joined, ...concurrencyOf(traffic) };
}

/** Tokens a millisecond. */
function demandOf({ trace: { inputTokens, outputTokens }, durationMs }: Block): number {
  const tokens = inputTokens.reduce((sum, input, i) => sum + input + OUTPUT_WEIGHT * outputTokens[i], 0);
  return tokens / durationMs;
}

function concurrencyOf({ concurrency }: Traffic): Pick<Traffic, 'concurrency'> {
  return concurrency === undefined ? {} : { concurrency };
}

/** Traffics one after the other. */
export function joinTraffic(traffics: readonly Traffic[]): Traffic {
  const joined = joinBlocks(
    traffics.flatMap((traffic) =>
      traffic.blockStarts.slice(1).map((end, b) => sliceTrace(traffic, traffic.blockStarts[b], end)),
    ),
  );
  return { ...joined, ...concurrencyOf(traffics[0]) };
}

/** Mean requests/s of the trace's arrivals. */
export function requestRate({ trace }: Traffic): number {
  const { arrivalMs } = trace;
  return (1000 * (arrivalMs.length - 1)) / arrivalMs[arrivalMs.length - 1];
}
