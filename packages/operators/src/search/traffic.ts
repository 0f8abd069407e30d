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
  const expected = `${trace.source}: expected at least ${FEWEST_REQUESTS} requests to search on`;
  if (requests < FEWEST_REQUESTS) throw new TuningError('TOO_FEW_REQUESTS', `${expected}, got ${requests}`);
  const size = Math.floor(Math.min(requests, most) / BLOCKS);
  const starts = Array.from({ length: BLOCKS }, (_, b) => Math.floor((b * requests) / BLOCKS));
  const blocks = starts.map((start) => sliceTrace({ trace, priorities }, start, start + size));
  return {
    search: joinBlocks(blocks.filter((_, b) => b % 2 === 0)),
    heldOut: joinBlocks(blocks.filter((_, b) => b % 2 === 1)),
  };
}

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
  const { source, prefixBlocks, followUps, adapters } = blocks[0].trace;
  const starts = [{ request: 0, ms: 0, id: 0 }];
  for (const [b, { trace, durationMs }] of blocks.entries()) {
    const { request, ms, id } = starts[b];
    const ids = trace.prefixBlocks?.ids.length ?? 0;
    starts.push({ request: request + trace.arrivalMs.length, ms: ms + durationMs, id: id + ids });
  }
  const all = (of: (block: Block, start: (typeof starts)[number]) => Iterable<number>) =>
    blocks.flatMap((block, b) => [...of(block, starts[b])]);
  const chained = all(({ trace }, { request }) =>
    (trace.followUps?.previous ?? []).map((previous) => (previous === -1 ? -1 : request + previous)),
  );
  const ends = all(({ trace }, { id }) =>
    (trace.prefixBlocks?.offsets.slice(1) ?? []).map((end) => id + end),
  );
  return {
    blockStarts: starts.map(({ request }) => request),
    ...(blocks[0].priorities && { priorities: Uint8Array.from(all(({ priorities }) => priorities!)) }),
    trace: {
      source,
      arrivalMs: Float64Array.from(all(({ trace }, { ms }) => trace.arrivalMs.map((own) => ms + own))),
      inputTokens: Int32Array.from(all(({ trace }) => trace.inputTokens)),
      outputTokens: Int32Array.from(all(({ trace }) => trace.outputTokens)),
      ...(adapters && {
        adapters: { ...adapters, of: Int32Array.from(all(({ trace }) => trace.adapters!.of)) },
      }),
      ...(prefixBlocks && {
        prefixBlocks: {
          ...prefixBlocks,
          ids: Float64Array.from(all(({ trace }) => trace.prefixBlocks!.ids)),
          offsets: Int32Array.from([0, ...ends]),
        },
      }),
      ...(followUps && {
        followUps: {
          previous: Int32Array.from(chained),
          thinkMs: Float64Array.from(all(({ trace }) => trace.followUps!.thinkMs)),
        },
      }),
    },
  };
}

function blocksOf(traffic: Traffic): Block[] {
  return traffic.blockStarts.slice(1).map((end, b) => sliceTrace(traffic, traffic.blockStarts[b], end));
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
  const slices = blocksOf(traffic);
  const order = slices.map((_, b) => b);
  if (concurrency === undefined) {
    const demands = slices.map(demandOf);
    order.sort((a, b) => demands[a] - demands[b]);
  }
  const chosen = Array.from({ length: count }, (_, i) => order[Math.floor(((i + 1) * (blocks - 1)) / count)]);
  const joined = joinBlocks(chosen.sort((a, b) => a - b).map((b) => slices[b]));
  return { ...joined, ...(concurrency !== undefined && { concurrency }) };
}

/** Tokens a millisecond. */
function demandOf({ trace: { inputTokens, outputTokens }, durationMs }: Block): number {
  const tokens = inputTokens.reduce((sum, input, i) => sum + input + OUTPUT_WEIGHT * outputTokens[i], 0);
  return tokens / durationMs;
}

export function joinTraffic(traffics: readonly Traffic[]): Traffic {
  const [{ concurrency }] = traffics;
  return { ...joinBlocks(traffics.flatMap(blocksOf)), ...(concurrency !== undefined && { concurrency }) };
}

/** Mean requests/s of the trace's arrivals. */
export function requestRate({ trace }: Traffic): number {
  const { arrivalMs } = trace;
  return (1000 * (arrivalMs.length - 1)) / arrivalMs[arrivalMs.length - 1];
}
