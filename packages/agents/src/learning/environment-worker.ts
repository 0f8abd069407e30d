import { parentPort, workerData } from 'node:worker_threads';
import {
  type EnvironmentModule,
  type EnvironmentShare,
  environmentsOf,
  PENDING,
  ROUND,
} from './parallel-environments.ts';

/** Steps a share of the environments, a round each time the main thread asks, until it is terminated. */
const share = workerData as EnvironmentShare;
const { control, failure } = share;
const { createEnvironment } = (await import(share.module)) as EnvironmentModule;
const environments = environmentsOf(share, createEnvironment);
const heads = environments.headSizes.length;
const actions = share.actions.subarray(share.first * heads, share.end * heads);
parentPort!.postMessage('ready');

for (let round = 0; ; round++) {
  Atomics.wait(control, ROUND, round);
  try {
    environments.step(actions);
  } catch (error) {
    // `encodeInto` does not take shared memory.
    const message = new TextEncoder().encode(String(error));
    failure.set(message.subarray(0, failure.length));
  }
  Atomics.sub(control, PENDING, 1);
  Atomics.notify(control, PENDING);
}
