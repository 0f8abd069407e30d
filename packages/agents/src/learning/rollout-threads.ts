import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { simdKernels } from './kernels.ts';
import type { LearningEnvironment } from './learning-environment.ts';
import type { PpoTraining } from './ppo.ts';
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

/** Environments to play, and threads to play them, the calling one included. */
interface ThreadedRollouts extends Pick<PpoTraining, 'threads' | 'module' | 'settings'> {
  /** Environments in all. */
  readonly environments: number;
  /** Actions that each environment plays in a rollout. */
  readonly steps: number;
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
 * others, and what is played does not depend on how many there are. Starts the threads and the episodes; `close` what
 * this answers, or its threads stay until the process ends.
 */
export async function startRollouts(options: ThreadedRollouts) {
  const { environments, steps, threads, module, settings, plan } = options;
  if (!Number.isSafeInteger(threads) || threads < 1 || threads > environments) {
    throw new RangeError(
      `Expected from 1 to ${environments} threads, as many as environments, got ${threads}`,
    );
  }
  const { createEnvironment } = (await import(module.href)) as EnvironmentModule;
  const { observationSize, headSizes } = await createEnvironment(settings);
  const control = new Int32Array(new SharedArrayBuffer(4 * 2));
  const failure = new Uint8Array(new SharedArrayBuffer(FAILURE_BYTES));
  const rollout = allocateRollout({ environments, steps, observationSize, headSizes });
  const policy = allocatePolicy({ observationSize, headSizes, hidden: plan.hidden });
  const common = { module: module.href, settings, plan, rollout, policy, control, failure };
  const bounds = Array.from({ length: threads + 1 }, (_, t) => Math.round((t * environments) / threads));
  const shares = bounds
    .slice(0, -1)
    .map((first, t): ThreadShare => ({ ...common, first, end: bounds[t + 1] }));
  const workers = await Promise.all(shares.slice(1).map(startWorker));
  const own = await playerOf(shares[0], createEnvironment);
  return {
    ...{ plan, policy, rollout },
    /** Throws an `Error` when an environment fails on a worker thread. */
    play() {
      Atomics.store(control, PENDING, workers.length);
      Atomics.add(control, ROUND, 1);
      Atomics.notify(control, ROUND);
      own.play();
      for (
        let pending = Atomics.load(control, PENDING);
        pending > 0;
        pending = Atomics.load(control, PENDING)
      ) {
        Atomics.wait(control, PENDING, pending);
      }
      if (failure[0] !== 0) {
        const message = new TextDecoder().decode(failure.slice()).replace(/\0+$/, '');
        throw new Error(`An environment failed on a worker thread: ${message}`);
      }
    },
    async close() {
      await Promise.all(workers.map((worker) => worker.terminate()));
    },
  };
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
  await once(worker, 'message');
  worker.unref();
  return worker;
}
