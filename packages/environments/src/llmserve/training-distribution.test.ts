import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { findProfile, listProfiles } from '@servegym/profiles';
import { chooseTask } from './scenario.ts';
import { ServeEpisode } from './serve-episode.ts';
import { SERVE_TASKS } from './serve-task.ts';
import { drawTrainingEpisode, HELD_OUT as SCENARIOS, trainingProfiles } from './training-distribution.ts';

/** Names of what policies of any server are tested on and never trained on. */
const HELD_OUT = /l40s|mi300x|rtx ?4090|mistral|mixtral/i;

describe('the training distribution', () => {
  const episodes = Array.from({ length: 1500 }, (_, seed) => drawTrainingEpisode(seed));
  const drawn = episodes.map(({ task }) => task);

  it('reaches no profile of a GPU or model that is held out', () => {
    const known = listProfiles().filter(({ name }) => HELD_OUT.test(name));
    assert.ok(known.length > 50);
    for (const task of Object.values(SERVE_TASKS)) {
      for (const name of trainingProfiles(task)) {
        const { gpu, model } = findProfile(name);
        assert.doesNotMatch(`${name} ${gpu.name} ${model.name}`, HELD_OUT);
      }
    }
    for (const { task, profile } of episodes)
      assert.doesNotMatch(`${task.profile} ${profile.name}`, HELD_OUT);
  });

  it('reaches no traffic of a public trace', () => {
    for (const task of drawn) {
      assert.equal(task.source, undefined);
      assert.ok(!('source' in task));
    }
  });

  it('reaches none of the scenarios that are held out', () => {
    assert.equal(Object.keys(SCENARIOS).length, 7);
    for (const [name, scenario] of Object.entries(SCENARIOS)) {
      const { profile, source } = chooseTask({ ...scenario, task_id: 'bursty_workload' });
      const isPublic = source !== undefined;
      assert.ok(isPublic || HELD_OUT.test(profile), name);
    }
  });

  it('has servers, rates, prompts, objectives and prices of its own, the same for the same seed', () => {
    assert.deepEqual(drawTrainingEpisode(7), episodes[7]);
    const shares = (isIt: (task: (typeof drawn)[number]) => boolean) =>
      drawn.filter(isIt).length / drawn.length;
    assert.ok(Math.abs(shares((task) => task === SERVE_TASKS[task.id as 'static_workload']) - 0.2) < 0.05);
    assert.ok(new Set(drawn.map(({ profile }) => profile)).size > 40);
    const spread = (figure: (task: (typeof drawn)[number]) => number) => {
      const values = drawn.map(figure);
      return Math.max(...values) / Math.min(...values);
    };
    assert.ok(spread(({ phases }) => phases[0]!.arrivalsPerSecond[0]) > 20);
    assert.ok(spread(({ objectives }) => objectives.interactive.tpotMs) > 4);
    assert.ok(spread(({ reward }) => reward.memory) > 1.8);
    assert.ok(spread(({ phases }) => phases[0]!.qualityValue) > 10);
  });

  it('can be played', () => {
    for (const [seed, { task, profile }] of episodes.slice(0, 12).entries()) {
      const episode = new ServeEpisode(task, seed, { profile });
      for (let window = 0; window < 3; window++) assert.ok(Number.isFinite(episode.step(task.defaultAction)));
    }
  });
});
