import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { TICKS_PER_S, type Trace } from '@servegym/simulator';
import fc from 'fast-check';
import { SEED_SPLITS } from '../scenario.ts';
import { REQUEST_CLASSES } from '../tasks.ts';
import { addServeTrace } from '../traces.ts';
import { promptPrefix, WORKLOAD_IDS } from '../workload/fitted-workload.ts';
import { drawRequests, traceStretch } from './episode-requests.ts';
import { chooseTask } from './scenario.ts';
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

/** A request a second for `requests` seconds, each with a prompt that tells which it is. */
function steadyTrace(requests: number): Trace {
  return {
    source: 'steady',
    arrivalMs: Float64Array.from({ length: requests }, (_, i) => i * 1000),
    inputTokens: Int32Array.from({ length: requests }, (_, i) => i + 1),
    outputTokens: new Int32Array(requests).fill(10),
  };
}

describe('traffic from elsewhere', () => {
  for (const traffic of WORKLOAD_IDS) {
    it(`is sorted into the windows of every task (${traffic})`, () => {
      for (const task_id of TASK_IDS) {
        const task = chooseTask({ task_id, traffic });
        const requests = drawRequests(task, 5);
        assert.equal(requests.windowStarts[task.windows], requests.arrivalTicks.length);
        for (let w = 0; w < task.windows; w++) {
          for (let i = requests.windowStarts[w]; i < requests.windowStarts[w + 1]; i++) {
            assert.equal(Math.floor(requests.arrivalTicks[i] / TICKS_PER_S / task.windowSeconds), w);
          }
        }
        const shares = Object.values(task.phases[0].traffic).reduce((sum, { share }) => sum + share, 0);
        assert.ok(Math.abs(shares - 1) < 1e-9);
        assert.equal(task.phases.length, 1);
        assert.deepEqual(drawRequests(task, 5), requests);
      }
    });
  }

  it('shares prefixes as often as the trace did', () => {
    const task = { ...chooseTask({ traffic: 'mooncake-conversation' }), windows: 1500 };
    const requests = drawRequests(task, 1);
    const seen = new Set<number>();
    let shared = 0;
    let total = 0;
    for (let i = 0; i < requests.arrivalTicks.length; i++) {
      const { ids, chunkTokens } = promptPrefix(requests, i)!;
      let held = 0;
      while (held < ids.length && seen.has(ids[held])) held++;
      shared += Math.min(requests.inputTokens[i], held * chunkTokens);
      total += requests.inputTokens[i];
      for (let at = 0; at < ids.length; at++) seen.add(ids[at]);
    }
    assert.ok(Math.abs(shared / total - 0.37) < 0.08, `${shared / total} of the prompt tokens`);
  });
});

describe('a trace as traffic', () => {
  it('is played from its start, over and over, when it is no longer than the episode', () => {
    addServeTrace('short', steadyTrace(10));
    const task = chooseTask({ trace: 'short' });
    const { inputTokens, arrivalTicks } = drawRequests(task, 9);
    assert.equal(arrivalTicks.length, task.windows * task.windowSeconds);
    assert.deepEqual([...inputTokens.slice(0, 12)], [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 1, 2]);
    assert.equal(arrivalTicks[10], 10 * TICKS_PER_S);
  });

  it('is played faster by rate_scale, in the same order', () => {
    addServeTrace('short', steadyTrace(10));
    const task = chooseTask({ trace: 'short', rate_scale: 4 });
    const { inputTokens, arrivalTicks } = drawRequests(task, 9);
    assert.equal(arrivalTicks.length, 4 * task.windows * task.windowSeconds);
    assert.equal(arrivalTicks[4], TICKS_PER_S);
    assert.equal(inputTokens[4], 5);
  });

  it('is entered at a place that the seed draws when it is longer, the same for the same seed', () => {
    addServeTrace('long', steadyTrace(1000));
    const task = chooseTask({ trace: 'long' });
    const firsts = [1, 2, 3, 4, 5].map((seed) => drawRequests(task, seed).inputTokens[0]);
    assert.ok(new Set(firsts).size > 3, firsts.join());
    assert.equal(drawRequests(task, 3).inputTokens[0], firsts[2]);
  });

  it('is divided by time between the splits when it lasts five episodes', () => {
    const trace = addServeTrace('hours', steadyTrace(10_000));
    const part = (share: number) => share * 10_000_000;
    const bounds = {
      train: [0, part(0.6)],
      validation: [part(0.6), part(0.8)],
      test: [part(0.8), part(1)],
    } as const;
    fc.assert(
      fc.property(
        fc.constantFrom('train', 'validation', 'test'),
        fc.nat({ max: 99_999 }),
        (split: keyof typeof SEED_SPLITS, offset) => {
          const seed = SEED_SPLITS[split].first + offset;
          const { startMs } = traceStretch(trace, seed, 600_000);
          assert.ok(startMs >= bounds[split][0] && startMs + 600_000 <= bounds[split][1] + 1e-6);
        },
      ),
    );
  });

  it('keeps the classes that it has, and draws those that it has not by the shares of the task', () => {
    const columns = { arrival_s: [0, 1, 2], input_tokens: [5, 6, 7], output_tokens: [8, 9, 10] };
    const own = chooseTask({ trace: { ...columns, class: ['batch', 'interactive', 'best_effort'] } });
    assert.deepEqual([...drawRequests(own, 0).classes.slice(0, 6)], [1, 0, 2, 1, 0, 2]);
    const drawn = chooseTask({ task_id: 'adversarial_multitenant', trace: columns });
    assert.equal(new Set(drawRequests(drawn, 0).classes).size, 3);
  });
});
