import type { Trace } from '@servegym/simulator';

/** A trace as bytes, for jobs: a header in JSON, then the columns. */
export function encodeTrace(trace: Trace): Uint8Array {
  const { prefixBlocks, followUps } = trace;
  const header = new TextEncoder().encode(
    JSON.stringify({
      source: trace.source,
      requests: trace.arrivalMs.length,
      ...(prefixBlocks && {
        blockTokens: prefixBlocks.blockTokens,
        namesAnswers: prefixBlocks.namesAnswers,
        ids: prefixBlocks.ids.length,
      }),
      ...(followUps && { hasFollowUps: true }),
    }),
  );
  const columns = [
    trace.arrivalMs,
    ...(prefixBlocks ? [prefixBlocks.ids] : []),
    ...(followUps ? [followUps.thinkMs] : []),
    trace.inputTokens,
    trace.outputTokens,
    ...(followUps ? [followUps.previous] : []),
    ...(prefixBlocks ? [prefixBlocks.offsets] : []),
  ];
  const start = columnsStart(header.length);
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

/** The trace in the bytes of `encodeTrace`. */
export function decodeTrace(encoded: Uint8Array): Trace {
  const bytes = encoded.slice();
  const headerLength = new DataView(bytes.buffer).getUint32(0, true);
  const { source, requests, blockTokens, namesAnswers, ids, hasFollowUps } = JSON.parse(
    new TextDecoder().decode(bytes.subarray(4, 4 + headerLength)),
  );
  let at = columnsStart(headerLength);
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
  const thinkMs = hasFollowUps === true ? column(Float64Array, 8, requests) : undefined;
  const inputTokens = column(Int32Array, 4, requests);
  const outputTokens = column(Int32Array, 4, requests);
  const previous = thinkMs && column(Int32Array, 4, requests);
  return {
    ...{ source, arrivalMs, inputTokens, outputTokens },
    ...(thinkMs && previous && { followUps: { previous, thinkMs } }),
    ...(hashes && {
      prefixBlocks: {
        ...{ blockTokens, ...(namesAnswers && { namesAnswers }) },
        ...{ ids: hashes, offsets: column(Int32Array, 4, requests + 1) },
      },
    }),
  };
}

/** Columns of doubles start at a multiple of 8. */
function columnsStart(headerLength: number): number {
  return 8 * Math.ceil((4 + headerLength) / 8);
}
