import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { findProfile } from '@servegym/profiles';
import { SEED_SPLITS } from '../scenario.ts';
import { drawFleetRequests } from './draw-requests.ts';
import { FleetEpisode } from './fleet-episode.ts';
import { fleetProfileFits } from './fleet-task.ts';
import { drawTrainingFleet } from './training-distribution.ts';

/** Names of what autoscalers of any fleet are tested on and never trained on. */
const HELD_OUT = /l40s|mi300x|rtx ?4090|mistral|mixtral|ragpulse/i;

describe('the training distribution of fleets', () => {
  const WINDOWS = 4;
  const tasks = Array.from({ length: 600 }, (_, seed) => drawTrainingFleet(seed, WINDOWS));
  const drawn = tasks.filter(({ id }) => id === 'any');

  it('reaches no profile or traffic that is held out', () => {
    for (const { profile, streams } of tasks) {
      const { gpu, model } = findProfile(profile);
      assert.doesNotMatch(`${profile} ${gpu.name} ${model.name} ${JSON.stringify(streams)}`, HELD_OUT);
    }
    for (const { streams } of drawn)
      for (const { lengths } of streams) assert.notEqual(typeof lengths, 'string');
  });

  it('has a quarter each of flash crowds, of public traffic, of agents and of drawn fleets', () => {
    const share = (isIt: (task: (typeof tasks)[number]) => boolean) =>
      tasks.filter(isIt).length / tasks.length;
    const isPublic = ({ id, streams }: (typeof tasks)[number]) => id !== 'any' && streams.length === 1;
    const isOfAgents = ({ id, streams }: (typeof tasks)[number]) =>
      id.endsWith('agents') && streams.length > 1;
    for (const each of [share(isPublic), share(isOfAgents), share(({ id }) => id === 'any')])
      assert.ok(Math.abs(each - 1 / 4) < 0.06);
    assert.deepEqual(drawTrainingFleet(7, WINDOWS), tasks[7]);
  });

  it('has fleets, lengths, objectives and prices of its own, whose longest request fits', () => {
    const spread = (figure: (task: (typeof tasks)[number]) => number) => {
      const values = drawn.map(figure);
      return Math.max(...values) / Math.min(...values);
    };
    assert.ok(new Set(drawn.map(({ profile }) => profile)).size > 40);
    assert.ok(spread(({ streams }) => streams[0]!.rate.perSecond) > 10);
    const lengths = (of: 'prompt' | 'output') =>
      spread(({ streams: [first] }) => (typeof first!.lengths === 'string' ? 1 : first!.lengths[of].median));
    assert.ok(lengths('prompt') > 8 && lengths('output') > 8);
    assert.ok(spread(({ coldStartSeconds: [fast] }) => fast) > 4);
    const bill = ({ profile, defaultAction }: (typeof tasks)[number]) => {
      const { count, usdPerHour } = findProfile(profile).gpu;
      return (defaultAction.replicas * count * usdPerHour) / 120;
    };
    assert.ok(spread((task) => task.referenceUsd / bill(task)) > 3.5);
    assert.ok(spread(({ objectives }) => objectives.interactive.tpotMs!) > 10);
    assert.ok(spread(({ prices }) => prices.interactive.usdPerMillionInput) > 10);
    for (const task of drawn) assert.ok(fleetProfileFits(findProfile(task.profile), task), task.profile);
  });

  it('can be played', () => {
    for (const [seed, task] of drawn.slice(0, 8).entries()) {
      const episode = new FleetEpisode(task, seed, drawFleetRequests(task, seed));
      for (let window = 0; window < 3; window++) assert.ok(Number.isFinite(episode.step(task.defaultAction)));
    }
    assert.ok(SEED_SPLITS.train.last < SEED_SPLITS.test.first);
  });
});
