import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { FINGERPRINT_SEED } from '../../recorded-returns.ts';
import { splitOfSeed } from '../../splits.ts';
import { drawRequests } from '../episode-requests.ts';
import { TASK_IDS } from '../schema.ts';
import { SERVE_TASKS } from '../serve-task.ts';
import { scaleArrivals } from '../shifts.ts';
import { constantReturn, episodeAnchors, type SeedReturns, serveReturns } from './serve-anchors.ts';

const LEAST_ROOM = { static_workload: 0, bursty_workload: 0.08, adversarial_multitenant: 0.12 };

describe('the recorded returns', () => {
  for (const taskId of TASK_IDS) {
    const task = SERVE_TASKS[taskId];
    const reference = serveReturns.reference(taskId);
    assert.ok(reference);
    const seeds = Object.keys(reference.seeds).map(Number);

    it(`data: are those of this task on this simulator; if not, \`maintenance/rebuild-references.ts\` makes them anew (${taskId})`, () => {
      assert.equal(reference.fingerprint, serveReturns.fingerprint(task));
    });

    it(`were made under a fingerprint that every phase is in (${taskId})`, () => {
      const played = new Set(drawRequests(task, FINGERPRINT_SEED).phases);
      assert.equal(played.size, task.phases.length);
    });

    it(`are what the default and the best constant earn, to the last bit (${taskId})`, () => {
      for (const seed of [seeds[0], seeds[seeds.length >> 1]]) {
        const requests = drawRequests(task, seed);
        const returns: SeedReturns = reference.seeds[seed];
        assert.equal(returns.default, constantReturn(task, seed, requests, task.defaultAction));
        assert.equal(returns.constant, constantReturn(task, seed, requests, reference.constant));
      }
    });

    it(`data: cover a hundred seeds of the test split, on which the clairvoyant is never below the constant (${taskId})`, () => {
      assert.ok(seeds.filter((seed) => splitOfSeed(seed) === 'test').length >= 100);
      for (const { constant, clairvoyant } of Object.values(reference.seeds)) {
        assert.ok(clairvoyant >= constant);
      }
    });

    it(`data: leave the room to adapt that the task is made for (${taskId})`, () => {
      const room = serveReturns.room(taskId);
      if (taskId === 'static_workload') assert.ok(Math.abs(room) < 0.05, `${room}`);
      else assert.ok(room >= LEAST_ROOM[taskId], `${room}`);
    });
  }
});

describe('the anchors of an episode', () => {
  const task = SERVE_TASKS.bursty_workload;
  const recorded = 2_000_000;
  const unrecorded = 2_090_000;

  it('are the recorded ones where there are any', () => {
    const anchors = episodeAnchors(task, recorded, drawRequests(task, recorded));
    const { clairvoyant, constant } = serveReturns.returns(task, recorded)!;
    assert.equal(anchors.estimated, false);
    assert.equal(anchors.clairvoyant, clairvoyant);
    assert.equal(anchors.constant, constant);
  });

  it('are played and estimated where there are none, and say so', () => {
    const requests = drawRequests(task, unrecorded);
    const anchors = episodeAnchors(task, unrecorded, requests);
    assert.equal(anchors.estimated, true);
    assert.equal(anchors.default, constantReturn(task, unrecorded, requests, task.defaultAction));
    assert.ok(anchors.clairvoyant > Math.max(anchors.default, anchors.constant!));
    assert.ok(anchors.clairvoyant <= anchors.bound);
  });

  it('of a shifted task are not those of the task itself', () => {
    const shifted = scaleArrivals(task, 1.5);
    assert.equal(serveReturns.returns(shifted, recorded), undefined);
    assert.equal(episodeAnchors(shifted, recorded, drawRequests(shifted, recorded)).estimated, true);
  });

  it('of a task of one’s own know no constant, and take the bound for what can be reached', () => {
    const own = { ...task, id: 'own_task' };
    const anchors = episodeAnchors(own, 1, drawRequests(own, 1));
    assert.equal(anchors.constant, null);
    assert.equal(anchors.clairvoyant, anchors.bound);
  });
});
