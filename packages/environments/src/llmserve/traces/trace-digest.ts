import { createHash } from 'node:crypto';
import { endianness } from 'node:os';
import type { ServeTrace } from '../requests/request-source.ts';

/** SHA-256 of what is played of a trace, in hexadecimal; the same on every machine. */
export function traceDigest(trace: Omit<ServeTrace, 'digest'>): string {
  const { arrivalMs, inputTokens, outputTokens, classes, prefixBlocks } = trace;
  const hash = createHash('sha256');
  const columns = [arrivalMs, inputTokens, outputTokens, classes, prefixBlocks?.ids, prefixBlocks?.offsets];
  for (const column of columns) {
    hash.update(`${column?.length ?? 0};`);
    if (column !== undefined) hash.update(littleEndian(column));
  }
  hash.update(`${prefixBlocks?.blockTokens ?? 0}`);
  return hash.digest('hex');
}

function littleEndian(column: Float64Array | Int32Array | Uint8Array): Buffer {
  const bytes = Buffer.from(column.slice().buffer);
  if (endianness() === 'LE') return bytes;
  if (column instanceof Float64Array) return bytes.swap64();
  return column instanceof Int32Array ? bytes.swap32() : bytes;
}
