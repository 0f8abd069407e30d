import { Worker } from 'node:worker_threads';
import type { LearningEnvironment } from './learning-environment.ts';
import { type TraceSchedule, traceSeeds } from './trace-schedule.ts';
import {
  allocateState,
  SerialEnvironments,
  sliceState,
  type VectorEnvironment,
  type VectorSize,
  type VectorState,
} from './vector-environment.ts';

/** What to run, and on how many threads. */
export interface ParallelOptions {
  /** Environments in all. */
  readonly count: number;
  /** Threads that step them, the calling one included. */
  readonly threads: number;
  /** Module that exports `createEnvironment(settings): LearningEnvironment`; imported by every thread. */
  readonly module: URL;
  /** Passed to `createEnvironment`; must survive structured cloning. */
  readonly settings: unknown;
  readonly schedule: TraceSchedule;
}

/** What the threads share. */
interface SharedMemory {
  readonly state: VectorState;
  readonly actions: Int32Array;
  /** Rounds asked for, and workers that have not finished the last one. */
  readonly control: Int32Array;
  /** What went wrong on a worker, in UTF-8; zeros while nothing has. */
  readonly failure: Uint8Array;
}

/** What a thread needs to know. */
export interface EnvironmentShare extends SharedMemory {
  readonly module: string;
  readonly settings: unknown;
  readonly schedule: TraceSchedule;
  /** First environment of the share and the one after its last. */
  readonly first: number;
  readonly end: number;
  readonly size: VectorSize;
}

/** Entries of `control`. */
export const ROUND = 0;
export const PENDING = 1;

/** Room for the message of a failure. */
const FAILURE_BYTES = 1000;

/**
 * Environments on several threads over shared memory. What they show does not depend on how many threads there are.
 * `close` it, or its threads stay until the process ends.
 */
export class ParallelEnvironments implements VectorEnvironment {
  readonly count: number;
  readonly observationSize: number;
  readonly headSizes: readonly number[];
  readonly observations: Float32Array;
  readonly binsInForce: Int32Array;
  readonly lastObservations: Float32Array;
  readonly seeds: Float64Array;
  readonly stepIndices: Int32Array;
  readonly rewards: Float64Array;
  readonly ends: Uint8Array;
  readonly #own: SerialEnvironments;
  readonly #workers: readonly Worker[];
  readonly #actions: Int32Array;
  readonly #control: Int32Array;
  readonly #failure: Uint8Array;

  private constructor(
    own: SerialEnvironments,
    { state, actions, control, failure }: SharedMemory,
    workers: readonly Worker[],
  ) {
    this.count = state.rewards.length;
    this.observationSize = own.observationSize;
    this.headSizes = own.headSizes;
    this.observations = state.observations;
    this.binsInForce = state.binsInForce;
    this.lastObservations = state.lastObservations;
    this.seeds = state.seeds;
    this.stepIndices = state.stepIndices;
    this.rewards = state.rewards;
    this.ends = state.ends;
    this.#own = own;
    this.#workers = workers;
    this.#actions = actions;
    this.#control = control;
    this.#failure = failure;
  }

  /** Starts the threads and the first episodes. */
  static async start({
    count,
    threads,
    module,
    settings,
    schedule,
  }: ParallelOptions): Promise<ParallelEnvironments> {
    if (!Number.isSafeInteger(threads) || threads < 1 || threads > count) {
      throw new RangeError(`Expected from 1 to ${count} threads, as many as environments, got ${threads}`);
    }
    const { createEnvironment } = (await import(module.href)) as EnvironmentModule;
    const { observationSize, headSizes } = createEnvironment(settings);
    const size: VectorSize = { count, observationSize, headCount: headSizes.length };
    const memory: SharedMemory = {
      state: allocateState(size, true),
      actions: new Int32Array(new SharedArrayBuffer(4 * count * size.headCount)),
      control: new Int32Array(new SharedArrayBuffer(4 * 2)),
      failure: new Uint8Array(new SharedArrayBuffer(FAILURE_BYTES)),
    };
    const bounds = Array.from({ length: threads + 1 }, (_, t) => Math.round((t * count) / threads));
    const common = { module: module.href, settings, schedule, size, ...memory };
    const workers = await Promise.all(
      bounds.slice(1, -1).map((first, w) => startWorker({ ...common, first, end: bounds[w + 2]! })),
    );
    const own = environmentsOf({ ...common, first: 0, end: bounds[1]! }, createEnvironment);
    return new ParallelEnvironments(own, memory, workers);
  }

  step(actions: Int32Array): void {
    const control = this.#control;
    this.#actions.set(actions);
    Atomics.store(control, PENDING, this.#workers.length);
    Atomics.add(control, ROUND, 1);
    Atomics.notify(control, ROUND);
    this.#own.step(actions.subarray(0, this.#own.count * this.headSizes.length));
    for (
      let pending = Atomics.load(control, PENDING);
      pending > 0;
      pending = Atomics.load(control, PENDING)
    ) {
      Atomics.wait(control, PENDING, pending);
    }
    if (this.#failure[0] !== 0) {
      const message = new TextDecoder().decode(this.#failure.slice()).replace(/\0+$/, '');
      throw new Error(`An environment failed on a worker thread: ${message}`);
    }
  }

  async close(): Promise<void> {
    await Promise.all(this.#workers.map((worker) => worker.terminate()));
  }
}

export interface EnvironmentModule {
  createEnvironment(settings: unknown): LearningEnvironment;
}

/** The environments of one thread. */
export function environmentsOf(
  { settings, schedule, first, end, size, state }: EnvironmentShare,
  createEnvironment: EnvironmentModule['createEnvironment'],
): SerialEnvironments {
  const environments = Array.from({ length: end - first }, () => createEnvironment(settings));
  const next = traceSeeds(schedule);
  const shown = sliceState(state, size, first, end);
  return new SerialEnvironments(environments, (environment) => next(first + environment), shown);
}

async function startWorker(share: EnvironmentShare): Promise<Worker> {
  const worker = new Worker(new URL('environment-worker.ts', import.meta.url), { workerData: share });
  await new Promise<void>((ready, failed) => {
    worker.once('message', () => ready());
    worker.once('error', failed);
  });
  worker.unref();
  return worker;
}
