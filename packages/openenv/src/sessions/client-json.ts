import { isLongerThan, type LimitedJsonReading, readLimitedJson } from '../protocol/read-json.ts';
import { type EnvironmentName, resetDigest } from './journal-digest.ts';
import { OffLoop } from './off-loop.ts';
import type { WrittenReset } from './off-loop-thread.ts';

/** Longer JSON is read and written on a thread, bytes. */
const LONG_BYTES = 16_384;

const decoder = new TextDecoder();
const thread = new OffLoop();

/**
 * Parses the JSON of a client within the limits of `readLimitedJson`; long JSON on a thread, in a turn of the client. Its
 * bytes are then gone.
 */
export function readClientJson(
  bytes: Uint8Array,
  client?: string,
  mostEntries?: number,
): LimitedJsonReading | Promise<LimitedJsonReading> {
  if (bytes.length <= LONG_BYTES) return readLimitedJson(decoder.decode(bytes), mostEntries);
  const own = bytes.length === bytes.buffer.byteLength ? bytes : new Uint8Array(bytes);
  const task = { kind: 'read-json', bytes: own, mostEntries } as const;
  return thread.do(task, client, [own.buffer as ArrayBuffer]) as Promise<LimitedJsonReading>;
}

/** The text of a reset and the digest of a journal that begins with it; of long options from the thread. */
export function writeReset(
  options: object,
  sessionId: string,
  { id, version }: EnvironmentName,
  episodeId: string,
): WrittenReset | Promise<WrittenReset> {
  const about = [sessionId, { id, version }, episodeId] as const;
  if (isLongerThan(options, LONG_BYTES) && isPlain(options)) {
    return thread.do({ kind: 'write-reset', options, about }) as Promise<WrittenReset>;
  }
  const text = JSON.stringify(options);
  return { text, digest: resetDigest(...about, text) };
}

/** True for what is the same JSON after it was sent to a thread: no instances of classes, which an environment may read from JSON. */
function isPlain(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return typeof value !== 'function';
  if (Array.isArray(value)) return value.every(isPlain);
  return Object.getPrototypeOf(value) === Object.prototype && Object.values(value).every(isPlain);
}
