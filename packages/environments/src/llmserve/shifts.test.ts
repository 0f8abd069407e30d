import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { findProfile } from '@servegym/profiles';
import { drawRequests } from './episode-requests.ts';
import { chooseTask, randomiseTask, SHIFTS, shiftTask, trainingProfiles } from './scenario.ts';
import { TASK_IDS } from './schema.ts';
import { ServeEpisode } from './serve-episode.ts';
import { SERVE_TASKS } from './serve-task.ts';

const mean = (values: ArrayLike<number>) => Array.from(values).reduce((a, b) => a + b, 0) / values.length;

describe('shifted tasks', () => {
  for (const task_id of TASK_IDS) {
    it(`keep what an agent is told, and can be played (${task_id})`, () => {
      const own = SERVE_TASKS[task_id];
      for (const shift of SHIFTS) {
        const task = chooseTask({ task_id, shift });
        assert.equal(task.id, own.id);
        assert.deepEqual(task.defaultAction, own.defaultAction);
        assert.deepEqual(task.objectives, own.objectives);
        assert.equal(task.windows, own.windows);
        const episode = new ServeEpisode(task, 2_000_000);
        for (let w = 0; w < 5; w++) episode.step(task.defaultAction);
        assert.ok(Number.isFinite(episode.totals.reward));
      }
    });

    it(`differ from the task in what their name says (${task_id})`, () => {
      const own = SERVE_TASKS[task_id];
      const drawn = (shift?: string) =>
        drawRequests(chooseTask({ task_id, ...(shift && { shift }) }), 2_000_000);
      const plain = drawn();
      const faster = drawn('rate_1.5');
      const longer = drawn('long_prompts');
      const more = faster.arrivalTicks.length / plain.arrivalTicks.length;
      assert.ok(Math.abs(more - 1.5) < 0.1, `${more} times the arrivals`);
      assert.deepEqual(longer.arrivalTicks, plain.arrivalTicks);
      assert.deepEqual(longer.outputTokens, plain.outputTokens);
      const length = mean(longer.inputTokens) / mean(plain.inputTokens);
      assert.ok(Math.abs(length - 2) < 0.02, `prompts ${length} times as long`);

      const profile = findProfile(own.profile);
      const otherGpu = findProfile(chooseTask({ task_id, shift: 'other_gpu' }).profile);
      const otherModel = findProfile(chooseTask({ task_id, shift: 'other_model' }).profile);
      assert.notEqual(otherGpu.gpu.name, profile.gpu.name);
      assert.equal(otherGpu.model.name, profile.model.name);
      assert.equal(otherModel.gpu.name, profile.gpu.name);
      assert.notEqual(otherModel.model.name, profile.model.name);
    });
  }

  it('go together with the traffic of a trace', () => {
    const task = chooseTask({ traffic: 'azure-code-2023', shift: 'long_prompts', rate_scale: 2 });
    assert.equal(task.source?.promptScale, 2);
    assert.equal(task.source?.rateScale, 2);
  });
});

const task = SERVE_TASKS.bursty_workload;

describe('a randomised task', () => {
  const drawn = Array.from({ length: 400 }, (_, seed) => randomiseTask(task, seed));

  it('has servers, traffic and rates of its own, the same for the same seed', () => {
    assert.deepEqual(randomiseTask(task, 7), drawn[7]);
    const profiles = new Set(drawn.map(({ profile }) => profile));
    assert.ok(profiles.size > 8 && profiles.has(task.profile), `${[...profiles]}`);
    const traffic = new Set(drawn.map(({ source }) => source?.name));
    assert.equal(traffic.size, 4);
    const unchanged = drawn.filter((each) => each === task).length / drawn.length;
    assert.ok(unchanged > 0.15 && unchanged < 0.35, `${unchanged}`);
    const rates = drawn.map(({ phases }) => phases[0]!.arrivalsPerSecond[0]);
    assert.ok(Math.max(...rates) > 1.4 * Math.min(...rates));
    for (const { objectives, reward, defaultAction } of drawn) {
      assert.deepEqual(
        [objectives, reward, defaultAction],
        [task.objectives, task.reward, task.defaultAction],
      );
    }
  });

  it('never has the server of the shift to another GPU, but its GPU and its model', () => {
    for (const each of Object.values(SERVE_TASKS)) {
      const heldOut = findProfile(shiftTask(each, 'other_gpu').profile);
      const profiles = trainingProfiles(each).map(findProfile);
      assert.ok(profiles.every(({ name }) => name !== heldOut.name));
      assert.ok(profiles.some(({ gpu }) => gpu.name === heldOut.gpu.name));
      assert.ok(profiles.some(({ model }) => model.name === heldOut.model.name));
    }
  });

  it('can be played', () => {
    for (const each of drawn.slice(0, 12)) {
      const episode = new ServeEpisode(each, 3);
      for (let window = 0; window < 3; window++) assert.ok(Number.isFinite(episode.step(each.defaultAction)));
    }
  });
});
