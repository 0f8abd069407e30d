import { parentPort, workerData } from 'node:worker_threads';
import { type EnvironmentModule, PENDING, playerOf, ROUND, type ThreadShare } from './rollout-threads.ts';

/** Plays a share of each rollout, whenever the main thread asks, until it is terminated. */
const share = workerData as ThreadShare;
const { control, failure } = share;
const { createEnvironment } = (await import(share.module)) as EnvironmentModule;
const player = await playerOf(share, createEnvironment);
parentPort!.postMessage('ready');

for (let round = 0; ; round++) {
  Atomics.wait(control, ROUND, round);
  try {
    player.play();
  } catch (error) {
    // `encodeInto` does not take shared memory.
    const message = new TextEncoder().encode(String(error));
    failure.set(message.subarray(0, failure.length));
  }
  Atomics.sub(control, PENDING, 1);
  Atomics.notify(control, PENDING);
}
