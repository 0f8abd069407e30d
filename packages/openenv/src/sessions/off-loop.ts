import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { unpack } from './long-json.ts';
import type { OffLoopTask } from './off-loop-thread.ts';
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
      this.#thread ??= this.#start();
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

  #start(): Worker {
    return new Worker(new URL('off-loop-thread.ts', import.meta.url)).once('exit', () => {
      this.#thread = undefined;
    });
  }
}
