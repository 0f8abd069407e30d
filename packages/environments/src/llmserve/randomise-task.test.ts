import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { findProfile } from '@servegym/profiles';
import { randomiseTask, trainingProfiles } from './randomise-task.ts';
import { ServeEpisode } from './serve-episode.ts';
import { SERVE_TASKS } from './serve-task.ts';
import { shiftTask } from './shifts.ts';

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
