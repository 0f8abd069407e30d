import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { TICKS_PER_S } from '@servegym/simulator';
import { REQUEST_CLASSES } from '../tasks.ts';
import { drawRequests } from './episode-requests.ts';
import { TASK_IDS } from './schema.ts';
import { SERVE_TASKS } from './serve-task.ts';

describe('the traffic of an episode', () => {
  for (const id of TASK_IDS) {
    const task = SERVE_TASKS[id];

    it(`is the same for the same seed and another for another (${id})`, () => {
      assert.deepEqual(drawRequests(task, 7), drawRequests(task, 7));
      assert.notDeepEqual(drawRequests(task, 7).arrivalTicks, drawRequests(task, 8).arrivalTicks);
      const large = 2 ** 53 - 1;
      assert.notDeepEqual(drawRequests(task, large).inputTokens, drawRequests(task, large >>> 0).inputTokens);
    });

    it(`has every request in its window, with lengths and a class that its phase allows (${id})`, () => {
      const requests = drawRequests(task, 3);
      for (let w = 0; w < task.windows; w++) {
        const { traffic, tenantGiB } = task.phases[requests.phases[w]];
        assert.ok(requests.tenantGiB[w] >= tenantGiB[0] && requests.tenantGiB[w] <= tenantGiB[1]);
        let previous = w * task.windowSeconds * TICKS_PER_S;
        for (let i = requests.windowStarts[w]; i < requests.windowStarts[w + 1]; i++) {
          assert.ok(requests.arrivalTicks[i] >= previous);
          previous = requests.arrivalTicks[i];
          const allowed = traffic[REQUEST_CLASSES[requests.classes[i]]];
          assert.ok(allowed !== undefined && allowed.share > 0);
          assert.ok(
            requests.inputTokens[i] >= allowed.prompt.min && requests.inputTokens[i] <= allowed.prompt.max,
          );
          assert.ok(
            requests.outputTokens[i] >= allowed.output.min && requests.outputTokens[i] <= allowed.output.max,
          );
        }
        assert.ok(previous < (w + 1) * task.windowSeconds * TICKS_PER_S);
      }
      assert.equal(requests.windowStarts[task.windows], requests.arrivalTicks.length);
    });
  }

  it('arrives at the rate that the task states', () => {
    const task = SERVE_TASKS.static_workload;
    const seconds = task.windows * task.windowSeconds;
    let requests = 0;
    for (let seed = 0; seed < 20; seed++) requests += drawRequests(task, seed).arrivalTicks.length;
    const rate = requests / (20 * seconds);
    // 20 episodes of 3,000 expected arrivals: a standard error of 0.041 arrivals a second.
    assert.ok(Math.abs(rate - task.phases[0].arrivalsPerSecond[0]) < 0.2, `${rate} arrivals a second`);
  });

  it('has the median lengths that the task states', () => {
    const task = SERVE_TASKS.static_workload;
    const prompts = drawRequests(task, 1).inputTokens.slice().sort();
    const median = prompts[prompts.length >> 1];
    const stated = task.phases[0].traffic.interactive?.prompt.median ?? 0;
    assert.ok(Math.abs(median / stated - 1) < 0.06, `${median} tokens`);
  });

  it('follows no phase by itself, and shares of a phase sum to 1', () => {
    for (const id of TASK_IDS) {
      for (const phase of SERVE_TASKS[id].phases) {
        const shares = Object.values(phase.traffic).reduce((sum, traffic) => sum + traffic.share, 0);
        assert.ok(Math.abs(shares - 1) < 1e-12);
      }
    }
    const { phases } = drawRequests(SERVE_TASKS.adversarial_multitenant, 5);
    const longest = SERVE_TASKS.adversarial_multitenant.phases.map((phase) => phase.windows[1]);
    for (let w = 0, run = 0; w < phases.length; w++) {
      run = w > 0 && phases[w] === phases[w - 1] ? run + 1 : 1;
      assert.ok(run <= longest[phases[w]]);
    }
  });
});
