import type { Job, JobEngine, Json, RunOptions } from '@servegym/jobs';
import { InterruptedError, onInterrupt } from '../interrupted-error.ts';

/** An engine whose jobs stop, here and at the queue, when this process is told to; a second signal ends it at once. */
export class StoppableJobs implements JobEngine {
  readonly #engine: JobEngine;
  readonly #stop = new AbortController();
  readonly #unhear: () => void;

  /** @param message Of the `InterruptedError` that `run` then throws. */
  constructor(engine: JobEngine, message = 'interrupted') {
    this.#engine = engine;
    this.#unhear = onInterrupt((signal) => this.#stop.abort(new InterruptedError(signal, message)));
  }

  get width(): number {
    return this.#engine.width;
  }

  share(bytes: Uint8Array): Promise<string> {
    return this.#engine.share(bytes);
  }

  run(jobs: readonly Job[], options: RunOptions = {}): Promise<Json[]> {
    const { signal: own } = options;
    const signal = own === undefined ? this.#stop.signal : AbortSignal.any([own, this.#stop.signal]);
    return this.#engine.run(jobs, { ...options, signal });
  }

  async close(): Promise<void> {
    this.#unhear();
    await this.#engine.close();
  }
}
