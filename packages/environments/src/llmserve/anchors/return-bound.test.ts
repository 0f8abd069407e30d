import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { drawRequests } from '../episode-requests.ts';
import { anyAction } from '../random-actions.fixture.ts';
import { TASK_IDS } from '../schema.ts';
import { ServeEpisode } from '../serve-episode.ts';
import { SERVE_TASKS } from '../serve-task.ts';
import { returnBound } from './return-bound.ts';
import { referenceConfigurations } from './serve-anchors.ts';

describe('the bound of a return', () => {
  for (const taskId of TASK_IDS) {
    const task = { ...SERVE_TASKS[taskId], windows: 24 };

    it(`is above whatever is played (${taskId})`, () => {
      fc.assert(
        fc.property(fc.nat(), fc.array(anyAction, { minLength: 1, maxLength: 6 }), (seed, actions) => {
          const requests = drawRequests(task, seed);
          const bound = returnBound(task, requests);
          for (const choices of [actions, referenceConfigurations(task)]) {
            const episode = new ServeEpisode(task, seed, { requests });
            while (!episode.done) episode.step(choices[Math.floor(episode.window / 6) % choices.length]);
            assert.ok(episode.totals.reward < bound, `${episode.totals.reward} of at most ${bound}`);
          }
        }),
        { numRuns: 10 },
      );
    });

    it(`is no higher than a window's parts allow (${taskId})`, () => {
      const { throughput, slo } = task.reward;
      assert.ok(returnBound(task, drawRequests(task, 1)) < task.windows * (throughput + slo));
    });
  }

  it('holds where hardly anybody comes and only cost counts', () => {
    const [phase] = SERVE_TASKS.static_workload.phases;
    const task = {
      ...SERVE_TASKS.static_workload,
      windows: 20,
      reward: { throughput: 0, slo: 0, memory: 0, cost: 1 },
      referenceCostPer1k: 0.1,
      phases: [{ ...phase!, arrivalsPerSecond: [0.02, 0.02] as const }],
    };
    for (let seed = 0; seed < 5; seed++) {
      const requests = drawRequests(task, seed);
      const episode = new ServeEpisode(task, seed, { requests });
      while (!episode.done) episode.step(task.defaultAction);
      assert.ok(episode.totals.reward <= returnBound(task, requests) + 1e-9);
    }
  });

  it('charges less for the same tokens when they can be emitted evenly', () => {
    const task = SERVE_TASKS.bursty_workload;
    const requests = drawRequests(task, 3);
    const early = {
      ...requests,
      windowStarts: requests.windowStarts.map((_, w) => (w === 0 ? 0 : requests.inputTokens.length)),
    };
    assert.ok(returnBound(task, early) > returnBound(task, requests));
  });
});
