import { hash } from 'node:crypto';
import { zstdCompressSync, zstdDecompressSync } from 'node:zlib';
import type { EnvironmentDefinition } from '../protocol/definition.ts';

/** Lists of at least so many numbers are sent to and from a thread as their bytes: each entry by itself takes 50 times as long. */
const LONG_LIST = 256;

/**
 * The same value with its long lists of numbers as `Float64Array`, and their buffers, to be transferred; `undefined` for what
 * would be another value after it was sent to a thread, as instances of classes that an environment may read from JSON.
 */
export function pack(
  value: unknown,
): { readonly packed: unknown; readonly buffers: ArrayBuffer[] } | undefined {
  const buffers: ArrayBuffer[] = [];
  let isPlain = true;
  const packOne = (one: unknown): unknown => {
    if (typeof one !== 'object' || one === null) {
      isPlain &&= typeof one !== 'function';
      return one;
    }
    if (Array.isArray(one)) {
      if (one.length < LONG_LIST || !one.every((entry) => typeof entry === 'number')) return one.map(packOne);
      const numbers = new Float64Array(one);
      buffers.push(numbers.buffer);
      return numbers;
    }
    isPlain &&= Object.getPrototypeOf(one) === Object.prototype;
    return isPlain ? Object.fromEntries(Object.entries(one).map(([key, each]) => [key, packOne(each)])) : one;
  };
  const packed = packOne(value);
  return isPlain ? { packed, buffers } : undefined;
}

/** The value that was packed, of which a copy that was sent is changed. */
export function unpack(value: unknown): unknown {
  if (value instanceof Float64Array) {
    // Several times as fast as `Array.from`.
    const list = new Array<number>(value.length);
    for (let i = 0; i < value.length; i++) list[i] = value[i];
    return list;
  }
  if (typeof value === 'object' && value !== null) {
    const fields = value as Record<string, unknown>;
    for (const key in fields) if (typeof fields[key] === 'object') fields[key] = unpack(fields[key]);
  }
  return value;
}

/** Before the compressed text of an entry of a journal; no JSON begins so. */
export const ZSTD_MARK = 'zstd:';

export function compressed(text: string): string {
  return ZSTD_MARK + zstdCompressSync(text).toString('base64');
}

/** The value of an entry of a journal, compressed or not. */
export function readEntry(text: string): unknown {
  if (!text.startsWith(ZSTD_MARK)) return JSON.parse(text);
  return JSON.parse(zstdDecompressSync(Buffer.from(text.slice(ZSTD_MARK.length), 'base64')).toString());
}

/** The environment that a session is played on. */
export type EnvironmentName = Pick<EnvironmentDefinition, 'id' | 'version'>;

/** Digest of a journal that begins with this reset. */
export function resetDigest(
  sessionId: string,
  { id, version }: EnvironmentName,
  episodeId: string,
  reset: string,
): string {
  return digestOf(JSON.stringify([sessionId, id, version, episodeId, reset]));
}

/** Digest of a journal after one more step. */
export function stepDigest(before: string, action: string): string {
  return digestOf(before + action);
}

function digestOf(text: string): string {
  return hash('sha256', text, 'base64').slice(0, 8);
}
