import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { isLongerThan, type LimitedJsonReading, readLimitedJson } from '../protocol/read-json.ts';
import { type EnvironmentName, pack, resetDigest, unpack } from './journal-entry.ts';
import type { OffLoopTask, WrittenReset } from './off-loop-thread.ts';
import { TurnQueue } from './turns.ts';

/** A thread for work that would stop the event loop. It starts with its first task. */
export class OffLoop {
  readonly #queue = new TurnQueue();
  #isBusy = false;
  #thread: Worker | undefined;

  /**
   * Does one task after another; clients take turns.
   * @param client as of `nextTurn`
   */
  async do(task: OffLoopTask, client = '', transferred: ArrayBuffer[] = []): Promise<unknown> {
    if (this.#isBusy) await new Promise<void>((start) => this.#queue.add(client, start));
    this.#isBusy = true;
    try {
      this.#thread ??= new Worker(new URL('off-loop-thread.ts', import.meta.url)).once('exit', () => {
        this.#thread = undefined;
      });
      // An idle thread does not keep the process.
      this.#thread.ref();
      this.#thread.postMessage(task, transferred);
      const [{ result, isPacked, error }] = await once(this.#thread, 'message');
      if (error !== undefined) throw error;
      return isPacked ? unpack(result) : result;
    } finally {
      this.#thread?.unref();
      if (this.#queue.isEmpty) this.#isBusy = false;
      else this.#queue.startNext();
    }
  }
}

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
