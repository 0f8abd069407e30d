import { isLongerThan, type LimitedJsonReading, readLimitedJson } from '../protocol/read-json.ts';
import { type EnvironmentName, resetDigest } from './journal-digest.ts';
import { pack } from './long-json.ts';
import { OffLoop } from './off-loop.ts';
import type { WrittenReset } from './off-loop-thread.ts';

/** Longer JSON is read, written and compressed on a thread, bytes. */
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
  const long = isLongerThan(options, LONG_BYTES) ? pack(options) : undefined;
  if (long) {
    const task = { kind: 'write-reset', options: long.packed, about } as const;
    return thread.do(task, '', long.buffers) as Promise<WrittenReset>;
  }
  const text = JSON.stringify(options);
  return { text, digest: resetDigest(...about, text) };
}
