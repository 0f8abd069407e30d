import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { inverseNormal } from '@servegym/simulator/statistics';
import { GYM_TASK_IDS, GYM_TASKS } from './gym-tasks.ts';
import { GymWorkload, TPOT_JITTER, TTFT_JITTER } from './gym-workload.ts';
import { EPISODE_STEPS } from './schema.ts';

const SEEDS = Array.from({ length: 40 }, (_, seed) => seed);
const STEPS = Array.from({ length: EPISODE_STEPS }, (_, step) => step);

const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;

describe('the traffic of inferencegym', () => {
  for (const id of GYM_TASK_IDS) {
    const task = GYM_TASKS[id];
    it(`has Poisson arrivals at the task's rates (${id})`, () => {
      for (const burst of task.bursts === null ? [false] : [false, true]) {
        const counts = SEEDS.flatMap((seed) => {
          const workload = new GymWorkload(task, seed);
          return STEPS.filter((step) => workload.isBurst(step) === burst).map((step) =>
            workload.arrivals(step),
          );
        });
        const rate = burst ? task.bursts!.rate : task.arrivalRate;
        const average = mean(counts);
        const variance = mean(counts.map((count) => (count - average) ** 2));
        assert.ok(Math.abs(average / rate - 1) < 0.03, `${average} arrivals where ${rate} were due`);
        assert.ok(Math.abs(variance / rate - 1) < 0.15, `variance ${variance} where ${rate} was due`);
      }
    });

    it(`keeps prompts and classes to the task's distributions (${id})`, () => {
      const workload = new GymWorkload(task, 1);
      const prompts: number[] = [];
      const classes = [0, 0, 0];
      for (const step of STEPS) {
        workload.turnTo(step);
        for (let i = 0; i < 30; i++) {
          prompts.push(workload.promptTokens(i));
          classes[workload.classOf(i)]++;
        }
      }
      const bounds = task.prompts.map(({ lengths }) => [lengths.from, lengths.to] as const);
      for (const prompt of prompts) {
        assert.ok(
          bounds.some(([from, to]) => prompt >= from && prompt <= to),
          `${prompt}`,
        );
        assert.equal(prompt, Math.round(prompt));
      }
      for (const [kind, share] of task.classShares.entries()) {
        assert.ok(Math.abs(classes[kind] / prompts.length - share) < 0.03);
      }
    });
  }

  it('bursts as often and as long as the task says, from a step that the seed draws', () => {
    for (const id of [2, 3] as const) {
      const { bursts } = GYM_TASKS[id];
      const firsts = new Set<number>();
      for (const seed of SEEDS) {
        const workload = new GymWorkload(GYM_TASKS[id], seed);
        const begins = STEPS.filter((step) => workload.isBurst(step) && !workload.isBurst(step - 1));
        firsts.add(begins[0]);
        for (const [i, begin] of begins.entries()) {
          assert.equal(begin, begins[0] + i * bursts!.period);
          assert.equal(workload.phase(begin), 'burst');
          assert.equal(workload.isBurst(begin + bursts!.steps), false);
          if (begin + bursts!.steps < EPISODE_STEPS) {
            assert.equal(workload.phase(begin + bursts!.steps), 'cooldown');
          }
        }
      }
      assert.ok(firsts.size > 10);
    }
    const steady = new GymWorkload(GYM_TASKS[1], 1);
    assert.deepEqual(
      [0, 9, 10, 199].map((step) => steady.phase(step)),
      ['warmup', 'warmup', 'steady', 'steady'],
    );
  });

  it('jitters latencies by 5 %, each source by itself', () => {
    const draws = SEEDS.flatMap((seed) => {
      const workload = new GymWorkload(GYM_TASKS[1], seed);
      return STEPS.map((step) => [workload.jitter(step, TTFT_JITTER), workload.jitter(step, TPOT_JITTER)]);
    });
    for (const source of [0, 1]) {
      const values = draws.map((pair) => pair[source]);
      assert.ok(Math.abs(mean(values) - 1) < 0.002);
      assert.ok(Math.abs(Math.sqrt(mean(values.map((value) => (value - 1) ** 2))) - 0.05) < 0.002);
    }
    const correlation = mean(draws.map(([a, b]) => (a - 1) * (b - 1))) / 0.05 ** 2;
    assert.ok(Math.abs(correlation) < 0.05);
  });

  it('is the same for a seed and another for another', () => {
    const tell = (seed: number) => {
      const workload = new GymWorkload(GYM_TASKS[3], seed);
      return STEPS.map((step) => {
        workload.turnTo(step);
        return [workload.arrivals(step), workload.promptTokens(3), workload.classOf(3)];
      });
    };
    assert.deepEqual(tell(5), tell(5));
    assert.notDeepEqual(tell(5), tell(6));
  });
});

describe('the normal quantile', () => {
  it('is where tables of the normal distribution have it', () => {
    for (const [probability, quantile] of [
      [0.5, 0],
      [0.841344746, 1],
      [0.975, 1.959963985],
      [0.01, -2.326347874],
      [0.999, 3.090232306],
    ]) {
      assert.ok(Math.abs(inverseNormal(probability) - quantile) < 1e-7);
    }
  });
});
