import type { Job, JobEngine, Json, RunOptions } from '@servegym/jobs';
import { InputError } from '../input-error.ts';

const SIGNALS = ['SIGINT', 'SIGTERM'] as const;

/** An engine whose jobs stop, here and at the queue, when this process is told to; a second signal ends it at once. */
export class StoppableJobs implements JobEngine {
  readonly #engine: JobEngine;
  readonly #stop = new AbortController();
  readonly #hear: () => void;

  /** @param message What `run` then throws, as an `InputError`. */
  constructor(engine: JobEngine, message = 'interrupted') {
    this.#engine = engine;
    this.#hear = () => {
      this.#unhear();
      this.#stop.abort(new InputError(message));
    };
    for (const signal of SIGNALS) process.on(signal, this.#hear);
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

  #unhear(): void {
    for (const signal of SIGNALS) process.off(signal, this.#hear);
  }
}
