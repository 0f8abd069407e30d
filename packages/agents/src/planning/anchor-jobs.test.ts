import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { llmserve, SEED_SPLITS, type SeedReturns, ServeEpisode } from '@servegym/environments';
import { mean, stratifiedBootstrap } from '@servegym/simulator/statistics';
import { createServePolicy } from '../policies/serve-policies.ts';
import { referenceReturns } from './anchor-jobs.ts';

const ADAPTIVE = ['bursty_workload', 'adversarial_multitenant'] as const;
/** In the order of their worth. */
const ANCHORS = ['default', 'constant', 'planner', 'clairvoyant'] as const;

/** Test seeds of a task that the planner without foresight has played too. */
function planned(taskId: (typeof llmserve.tasks.shippedIds)[number]): [number, Required<SeedReturns>][] {
  return Object.entries(llmserve.anchors.reference(taskId)!.seeds).flatMap(([seed, returns]) => {
    const { planner } = returns;
    if (planner === undefined || Number(seed) < SEED_SPLITS.test.first) return [];
    return [[Number(seed), { ...returns, planner }] as [number, Required<SeedReturns>]];
  });
}

/** Asserts that the 95 % interval of the mean of the differences lies above 0. */
function above(higher: readonly number[], lower: readonly number[], what: string): void {
  const [low] = stratifiedBootstrap([higher.map((value, i) => value - lower[i])], mean);
  assert.ok(low > 0, `${what}: ${low}`);
}

function randomReturn(taskId: (typeof llmserve.tasks.shippedIds)[number], seed: number): number {
  const policy = createServePolicy('random');
  policy.reset({ taskId, seed });
  const episode = new ServeEpisode(llmserve.tasks.shipped[taskId], seed);
  while (!episode.done) {
    const { action: previousAction, window: stepIndex } = episode;
    episode.step(policy.act({ observation: episode.observation(), reward: null, previousAction, stepIndex }));
  }
  return episode.totals.reward;
}

describe('what the traffic of the tasks is worth', () => {
  for (const taskId of ADAPTIVE) {
    it(`rises from random over default, best constant and planner to the clairvoyant (${taskId})`, () => {
      const returns = planned(taskId).map(([, each]) => each);
      assert.ok(returns.length >= 100);
      const of = (anchor: keyof SeedReturns) => returns.map((each) => each[anchor]);
      const few = planned(taskId).slice(0, 8);
      above(
        few.map(([, each]) => each.default),
        few.map(([seed]) => randomReturn(taskId, seed)),
        'default over random',
      );
      above(of('constant'), of('default'), 'constant over default');
      above(of('planner'), of('constant'), 'planner over constant');
      above(of('clairvoyant'), of('planner'), 'clairvoyant over planner');
      const intervals = ANCHORS.map((anchor) => stratifiedBootstrap([of(anchor)], mean));
      for (const [i, [low]] of intervals.entries()) {
        if (i > 0) assert.ok(low > intervals[i - 1][1], `${ANCHORS[i]} apart from ${ANCHORS[i - 1]}`);
      }
    });

    it(`leaves a planner without foresight a score of 0.60 (${taskId})`, () => {
      const returns = planned(taskId).map(([, each]) => each);
      const gain = mean(returns.map((each) => each.planner - each.constant));
      const whole = mean(returns.map((each) => each.clairvoyant - each.constant));
      assert.ok(0.5 + 0.45 * (gain / whole) >= 0.6, `${gain} of ${whole}`);
    });

    it(`is found again, to the last bit (${taskId})`, () => {
      const [seed, returns] = planned(taskId)[0];
      const task = llmserve.tasks.shipped[taskId];
      assert.ok(llmserve.drawRequests(task, seed).inputTokens.length > 0);
      const configurations = llmserve.anchors.configurations(task);
      const planner = taskId === 'bursty_workload';
      const found = referenceReturns({ taskId, seed, configurations, planner }, { report: () => {} });
      const { planner: plannerReturn, ...rest } = returns;
      assert.deepEqual(found, planner ? { ...rest, planner: plannerReturn } : rest);
    });
  }
});
