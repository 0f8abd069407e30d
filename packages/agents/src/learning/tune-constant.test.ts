import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { llmserve, SEED_SPLITS, type ServeAction, ServeEpisode } from '@servegym/environments';
import { KNOB_GRID } from '../planning/plan-clairvoyant.ts';
import { type TunedConstant, tuneConstant } from './coordinate-search.ts';
import { traceSeed } from './learning-environment.ts';

const task = llmserve.tasks.shipped.static_workload;

/** Return of a constant on the one trace that is played below. */
function returnOf(action: ServeAction): number {
  const trace = traceSeed({ seed: 5, groupSize: 1, traces: SEED_SPLITS.train }, 0, 0);
  const episode = new ServeEpisode(task, trace);
  while (!episode.done) episode.step(action);
  return episode.totals.reward;
}

describe('tuneConstant', () => {
  it('ends where no change of one knob is better', async () => {
    const steps: TunedConstant[] = [];
    const { action, meanReturn, episodes } = await tuneConstant({
      ...{ taskId: 'static_workload', seed: 5, traces: { few: 1, many: 1 } },
      onProgress: (progress) => steps.push(progress),
    });
    assert.equal(meanReturn, returnOf(action));
    assert.ok(meanReturn > returnOf(task.defaultAction));
    assert.ok(steps.every((step) => step.meanReturn <= meanReturn));
    assert.ok(episodes >= steps.at(-1)!.episodes);
    for (const knob of llmserve.knobs) {
      for (const value of KNOB_GRID[knob]) {
        const neighbour = { ...action, [knob]: value };
        assert.ok(returnOf(neighbour) <= meanReturn, JSON.stringify(neighbour));
      }
    }
  });

  it('stops early when told to, with what it has', async () => {
    const stop = new AbortController();
    const { action } = await tuneConstant({
      ...{ taskId: 'static_workload', seed: 5, traces: { few: 1, many: 1 }, signal: stop.signal },
      onProgress: () => stop.abort(),
    });
    assert.deepEqual({ ...action, batch_cap: task.defaultAction.batch_cap }, task.defaultAction);
  });
});
