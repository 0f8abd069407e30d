import { Worker } from 'node:worker_threads';
import { simdKernels } from './kernels.ts';
import type { LearningEnvironment } from './learning-environment.ts';
import {
  allocatePolicy,
  allocateRollout,
  type PlayerShare,
  type PlayPlan,
  type PublishedPolicy,
  type Rollout,
  RolloutPlayer,
} from './rollout-player.ts';

/** Environments that play rollouts for a learner. */
export interface RolloutSource {
  readonly plan: PlayPlan;
  /** Policy that `play` acts by. */
  readonly policy: PublishedPolicy;
  /** Written by the last `play`. */
  readonly rollout: Rollout;
  play(): void;
}

/** Environments to play, and threads to play them. */
export interface ThreadedRollouts {
  /** Environments in all. */
  readonly environments: number;
  /** Actions that each environment plays in a rollout. */
  readonly steps: number;
  /** Threads that play, the calling one included. */
  readonly threads: number;
  /** Module that exports `createEnvironment(settings)`, see `EnvironmentModule`; imported by every thread. */
  readonly module: URL;
  /** Passed to `createEnvironment`; must survive structured cloning. */
  readonly settings: unknown;
  readonly plan: PlayPlan;
}

/** Share of a thread. */
export interface ThreadShare extends PlayerShare {
  readonly module: string;
  readonly settings: unknown;
  /** The environment after the last of the share. */
  readonly end: number;
  /** Rollouts asked for, and workers that have not finished the last one. */
  readonly control: Int32Array;
  /** Failure of a worker, in UTF-8; zeros while there is none. */
  readonly failure: Uint8Array;
}

export interface EnvironmentModule {
  createEnvironment(settings: unknown): LearningEnvironment | Promise<LearningEnvironment>;
}

/** Entries of `control`. */
export const ROUND = 0;
export const PENDING = 1;

/** Room for the message of a failure. */
const FAILURE_BYTES = 1000;

/**
 * Environments that play on several threads over shared memory. A thread plays whole rollouts without waiting for the
 * others, and what is played does not depend on how many there are. `close` it, or its threads stay until the process
 * ends.
 */
export class RolloutThreads implements RolloutSource {
  readonly plan: PlayPlan;
  readonly policy: PublishedPolicy;
  readonly rollout: Rollout;
  readonly #own: RolloutPlayer;
  readonly #workers: readonly Worker[];
  readonly #control: Int32Array;
  readonly #failure: Uint8Array;

  private constructor(share: ThreadShare, own: RolloutPlayer, workers: readonly Worker[]) {
    this.plan = share.plan;
    this.policy = share.policy;
    this.rollout = share.rollout;
    this.#own = own;
    this.#workers = workers;
    this.#control = share.control;
    this.#failure = share.failure;
  }

  /** Starts the threads and the episodes. */
  static async start(options: ThreadedRollouts): Promise<RolloutThreads> {
    const { environments, steps, threads, module, settings, plan } = options;
    if (!Number.isSafeInteger(threads) || threads < 1 || threads > environments) {
      throw new RangeError(
        `Expected from 1 to ${environments} threads, as many as environments, got ${threads}`,
      );
    }
    const { createEnvironment } = (await import(module.href)) as EnvironmentModule;
    const { observationSize, headSizes } = await createEnvironment(settings);
    const common = {
      ...{ module: module.href, settings, plan },
      rollout: allocateRollout({ environments, steps, observationSize, headSizes }),
      policy: allocatePolicy({ observationSize, headSizes, hidden: plan.hidden }),
      control: new Int32Array(new SharedArrayBuffer(4 * 2)),
      failure: new Uint8Array(new SharedArrayBuffer(FAILURE_BYTES)),
    };
    const bounds = Array.from({ length: threads + 1 }, (_, t) => Math.round((t * environments) / threads));
    const shares = bounds
      .slice(0, -1)
      .map((first, t): ThreadShare => ({ ...common, first, end: bounds[t + 1] }));
    const workers = await Promise.all(shares.slice(1).map(startWorker));
    return new RolloutThreads(shares[0], await playerOf(shares[0], createEnvironment), workers);
  }

  /** Throws an `Error` when an environment fails on a worker thread. */
  play(): void {
    const control = this.#control;
    Atomics.store(control, PENDING, this.#workers.length);
    Atomics.add(control, ROUND, 1);
    Atomics.notify(control, ROUND);
    this.#own.play();
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

/** The player of one thread. */
export async function playerOf(
  share: ThreadShare,
  createEnvironment: EnvironmentModule['createEnvironment'],
): Promise<RolloutPlayer> {
  const environments = await Promise.all(
    Array.from({ length: share.end - share.first }, () => createEnvironment(share.settings)),
  );
  return new RolloutPlayer(environments, share, simdKernels());
}

async function startWorker(share: ThreadShare): Promise<Worker> {
  const worker = new Worker(new URL('rollout-worker.ts', import.meta.url), { workerData: share });
  await new Promise<void>((ready, failed) => {
    worker.once('message', () => ready());
    worker.once('error', failed);
  });
  worker.unref();
  return worker;
}
