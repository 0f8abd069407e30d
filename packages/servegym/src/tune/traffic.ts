import type { Trace } from '@servegym/simulator';
import { InputError } from '../input-error.ts';

/** Requests to tune on, in blocks that are the units of its statistics. */
export interface Traffic {
  readonly trace: Trace;
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
 * @throws InputError when there are too few requests.
 */
export function splitTrace(trace: Trace, most: number): SplitTraffic {
  const requests = trace.arrivalMs.length;
  if (requests < FEWEST_REQUESTS) {
    throw new InputError(
      `${trace.source}: expected at least ${FEWEST_REQUESTS} requests to tune on, got ${requests}`,
    );
  }
  const size = Math.floor(Math.min(requests, most) / BLOCKS);
  const starts = Array.from({ length: BLOCKS }, (_, b) => Math.floor((b * requests) / BLOCKS));
  const blocks = starts.map((start) => sliceTrace(trace, start, start + size));
  return {
    search: joinBlocks(blocks.filter((_, b) => b % 2 === 0)),
    heldOut: joinBlocks(blocks.filter((_, b) => b % 2 === 1)),
  };
}

/** A stretch of a trace. */
interface Block {
  readonly trace: Trace;
  readonly durationMs: number;
}

/** The requests `start` .. `end - 1`, and the time until the one after them. */
export function sliceTrace(trace: Trace, start: number, end: number): Block {
  const { arrivalMs, prefixBlocks } = trace;
  const from = arrivalMs[start]!;
  const gap = (arrivalMs[end - 1]! - from) / Math.max(1, end - 1 - start);
  return {
    durationMs: (arrivalMs[end] ?? arrivalMs[end - 1]! + gap) - from,
    trace: {
      source: trace.source,
      arrivalMs: arrivalMs.slice(start, end).map((ms) => ms - from),
      inputTokens: trace.inputTokens.slice(start, end),
      outputTokens: trace.outputTokens.slice(start, end),
      ...(prefixBlocks && {
        prefixBlocks: {
          blockTokens: prefixBlocks.blockTokens,
          ids: prefixBlocks.ids.slice(prefixBlocks.offsets[start], prefixBlocks.offsets[end]),
          offsets: prefixBlocks.offsets
            .slice(start, end + 1)
            .map((offset) => offset - prefixBlocks.offsets[start]!),
        },
      }),
    },
  };
}

/** Blocks one after the other. */
export function joinBlocks(blocks: readonly Block[]): Traffic {
  const requests = blocks.reduce((sum, { trace }) => sum + trace.arrivalMs.length, 0);
  const arrivalMs = new Float64Array(requests);
  const inputTokens = new Int32Array(requests);
  const outputTokens = new Int32Array(requests);
  const first = blocks[0]!.trace;
  const offsets = new Int32Array(requests + 1);
  const ids: number[] = [];
  const blockStarts = [0];
  let at = 0;
  let now = 0;
  for (const { trace, durationMs } of blocks) {
    const { prefixBlocks } = trace;
    for (const [i, ms] of trace.arrivalMs.entries()) {
      arrivalMs[at + i] = now + ms;
      offsets[at + i + 1] = ids.length + (prefixBlocks?.offsets[i + 1] ?? 0);
    }
    inputTokens.set(trace.inputTokens, at);
    outputTokens.set(trace.outputTokens, at);
    if (prefixBlocks !== undefined) for (const id of prefixBlocks.ids) ids.push(id);
    at += trace.arrivalMs.length;
    now += durationMs;
    blockStarts.push(at);
  }
  return {
    blockStarts,
    trace: {
      source: first.source,
      ...{ arrivalMs, inputTokens, outputTokens },
      ...(first.prefixBlocks && {
        prefixBlocks: { blockTokens: first.prefixBlocks.blockTokens, ids: Float64Array.from(ids), offsets },
      }),
    },
  };
}

/** Some of the blocks, evenly over the traffic. */
export function someBlocks({ trace, blockStarts }: Traffic, count: number): Traffic {
  const blocks = blockStarts.length - 1;
  if (count >= blocks) return { trace, blockStarts };
  const chosen = Array.from({ length: count }, (_, i) => Math.floor(((i + 0.5) * blocks) / count));
  return joinBlocks(chosen.map((b) => sliceTrace(trace, blockStarts[b]!, blockStarts[b + 1]!)));
}

/** Traffics one after the other. */
export function joinTraffic(traffics: readonly Traffic[]): Traffic {
  return joinBlocks(
    traffics.flatMap(({ trace, blockStarts }) =>
      blockStarts.slice(1).map((end, b) => sliceTrace(trace, blockStarts[b]!, end)),
    ),
  );
}

/** Mean requests/s. */
export function requestRate({ trace }: Traffic): number {
  const { arrivalMs } = trace;
  return (1000 * (arrivalMs.length - 1)) / arrivalMs[arrivalMs.length - 1]!;
}

/** The traffic as bytes, for jobs. */
export function encodeTraffic({ trace, blockStarts }: Traffic): Uint8Array {
  const { prefixBlocks } = trace;
  const header = new TextEncoder().encode(
    JSON.stringify({
      source: trace.source,
      requests: trace.arrivalMs.length,
      blockStarts,
      ...(prefixBlocks && { blockTokens: prefixBlocks.blockTokens, ids: prefixBlocks.ids.length }),
    }),
  );
  const columns = [
    trace.arrivalMs,
    ...(prefixBlocks ? [prefixBlocks.ids] : []),
    trace.inputTokens,
    trace.outputTokens,
    ...(prefixBlocks ? [prefixBlocks.offsets] : []),
  ];
  // Columns of doubles start at a multiple of 8.
  const start = 8 * Math.ceil((4 + header.length) / 8);
  const bytes = new Uint8Array(start + columns.reduce((sum, column) => sum + column.byteLength, 0));
  new DataView(bytes.buffer).setUint32(0, header.length, true);
  bytes.set(header, 4);
  let at = start;
  for (const column of columns) {
    bytes.set(new Uint8Array(column.buffer, column.byteOffset, column.byteLength), at);
    at += column.byteLength;
  }
  return bytes;
}

export function decodeTraffic(shared: Uint8Array): Traffic {
  const bytes = shared.slice();
  const headerLength = new DataView(bytes.buffer).getUint32(0, true);
  const { source, requests, blockStarts, blockTokens, ids } = JSON.parse(
    new TextDecoder().decode(bytes.subarray(4, 4 + headerLength)),
  );
  let at = 8 * Math.ceil((4 + headerLength) / 8);
  const column = <T>(
    kind: new (buffer: ArrayBuffer, at: number, length: number) => T,
    size: number,
    length: number,
  ) => {
    const values = new kind(bytes.buffer, at, length);
    at += size * length;
    return values;
  };
  const arrivalMs = column(Float64Array, 8, requests);
  const hashes = ids === undefined ? undefined : column(Float64Array, 8, ids);
  const inputTokens = column(Int32Array, 4, requests);
  const outputTokens = column(Int32Array, 4, requests);
  return {
    blockStarts,
    trace: {
      ...{ source, arrivalMs, inputTokens, outputTokens },
      ...(hashes && {
        prefixBlocks: { blockTokens, ids: hashes, offsets: column(Int32Array, 4, requests + 1) },
      }),
    },
  };
}
