import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { identityEnvironment } from '../../test/identity-environment.ts';
import { ParallelEnvironments } from './parallel-environments.ts';
import { traceSeeds } from './trace-schedule.ts';
import { SerialEnvironments, type VectorEnvironment } from './vector-environment.ts';

const module = new URL('../../test/identity-environment.ts', import.meta.url);
const schedule = { seed: 1, groupSize: 2, traces: { first: 0, last: 999 } };
const COUNT = 5;

/** All that the environments show over 25 rounds, more than two episodes. */
function play(environments: VectorEnvironment): unknown[] {
  const shown: unknown[] = [];
  const actions = new Int32Array(2 * environments.count);
  for (let round = 0; round < 25; round++) {
    for (let a = 0; a < actions.length; a++) actions[a] = (round + a) % 3;
    environments.step(actions);
    const { observations, binsInForce, lastObservations, seeds, stepIndices, rewards, ends } = environments;
    shown.push(
      [observations, binsInForce, lastObservations, seeds, stepIndices, rewards, ends].map((values) => [
        ...values,
      ]),
    );
  }
  return shown;
}

describe('ParallelEnvironments', () => {
  const expected = play(
    new SerialEnvironments(Array.from({ length: COUNT }, identityEnvironment), traceSeeds(schedule)),
  );
  for (const threads of [1, 2, 3]) {
    it(`shows, on ${threads} threads, what the environments show in turn`, async () => {
      const environments = await ParallelEnvironments.start({
        ...{ count: COUNT, threads, module, settings: {}, schedule },
      });
      try {
        assert.deepEqual(play(environments), expected);
      } finally {
        await environments.close();
      }
    });
  }

  it('tells of an environment that fails on another thread', async () => {
    const settings = { failAt: 3 };
    const environments = await ParallelEnvironments.start({
      count: 2,
      threads: 2,
      module,
      settings,
      schedule,
    });
    try {
      assert.throws(
        () => play(environments),
        /An environment failed on a worker thread: Error: failed at window 3/,
      );
    } finally {
      await environments.close();
    }
  });

  it('refuses more threads than environments', async () => {
    await assert.rejects(
      ParallelEnvironments.start({ count: 2, threads: 3, module, settings: {}, schedule }),
      /Expected from 1 to 2 threads, as many as environments, got 3/,
    );
  });
});
