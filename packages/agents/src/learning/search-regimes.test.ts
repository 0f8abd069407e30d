import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { llmserve, ServeEpisode } from '@servegym/environments';
import type { SearchGeneration } from './cross-entropy-search.ts';
import { playRegimes, type RegimeTrial, searchRegimes } from './searches.ts';

const taskId = 'static_workload';

/** Cheap, and easy to search: pays for a batch cap near 64 and for INT8, regime by regime. */
const play = async (trials: readonly RegimeTrial[]) =>
  trials.map(({ regimes }) =>
    regimes
      .map(
        ({ action }) => (action.quantization_tier === 'INT8' ? 1 : 0) - Math.abs(action.batch_cap - 64) / 64,
      )
      .reduce((sum, pay) => sum + pay, 0),
  );

describe('searchRegimes', () => {
  it('finds the configurations that pay, on fresh traces of the training split in each generation', async () => {
    const generations: SearchGeneration[] = [];
    const traces = new Set<string>();
    const { regimes, steps } = await searchRegimes({
      ...{ taskId, steps: 120_000, seed: 1 },
      play(trials) {
        assert.equal(new Set(trials.map((trial) => trial.traces.join())).size, 1);
        traces.add(trials[0].traces.join());
        return play(trials);
      },
      onGeneration: (generation) => generations.push(generation),
    });
    assert.ok(steps >= 120_000);
    assert.equal(traces.size, generations.length);
    assert.ok(generations.at(-1)!.meanReturn > generations[0].meanReturn + 2);
    for (const { action } of regimes) {
      assert.equal(action.quantization_tier, 'INT8');
      assert.ok(action.batch_cap >= 32 && action.batch_cap <= 96, `${action.batch_cap}`);
    }
  });

  it('stops when told to', async () => {
    const stop = new AbortController();
    const { steps } = await searchRegimes({
      ...{ taskId, steps: 1e9, seed: 1, play, signal: stop.signal },
      onGeneration: () => stop.abort(),
    });
    assert.equal(steps, 24 * 2 * llmserve.tasks.shipped[taskId].windows);
  });
});

describe('playRegimes', () => {
  it('earns what its one configuration earns', () => {
    const { defaultAction: action } = llmserve.tasks.shipped[taskId];
    const episode = new ServeEpisode(llmserve.tasks.shipped[taskId], 7);
    while (!episode.done) episode.step(action);
    const regimes = [{ center: { arrivals: 1, prompts: 5 }, action }];
    assert.equal(playRegimes({ taskId, regimes, traces: [7, 7] }), episode.totals.reward);
  });
});
