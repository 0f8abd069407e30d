import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { anyAction } from '../random-actions.fixture.ts';
import { TASK_IDS } from '../schema.ts';
import { ServeEpisode } from '../serve-episode.ts';
import { SERVE_TASKS } from '../tasks/serve-tasks.ts';
import { generateWorkload } from '../workload/workload.ts';
import { referenceConfigurations } from './reference-returns.ts';
import { returnBound } from './return-bound.ts';

describe('the bound of a return', () => {
  for (const taskId of TASK_IDS) {
    const task = { ...SERVE_TASKS[taskId], windows: 24 };

    it(`is above whatever is played (${taskId})`, () => {
      fc.assert(
        fc.property(fc.nat(), fc.array(anyAction, { minLength: 1, maxLength: 6 }), (seed, actions) => {
          const workload = generateWorkload(task, seed);
          const bound = returnBound(task, workload);
          for (const choices of [actions, referenceConfigurations(task)]) {
            const episode = new ServeEpisode(task, seed, { workload });
            while (!episode.done) episode.step(choices[Math.floor(episode.window / 6) % choices.length]);
            assert.ok(episode.totals.reward < bound, `${episode.totals.reward} of at most ${bound}`);
          }
        }),
        { numRuns: 10 },
      );
    });

    it(`is no higher than a window's parts allow (${taskId})`, () => {
      const { throughput, slo } = task.reward;
      assert.ok(returnBound(task, generateWorkload(task, 1)) < task.windows * (throughput + slo));
    });
  }

  it('charges less for the same tokens when they can be emitted evenly', () => {
    const task = SERVE_TASKS.bursty_workload;
    const workload = generateWorkload(task, 3);
    const early = {
      ...workload,
      windowStarts: workload.windowStarts.map((_, w) => (w === 0 ? 0 : workload.inputTokens.length)),
    };
    assert.ok(returnBound(task, early) > returnBound(task, workload));
  });
});
