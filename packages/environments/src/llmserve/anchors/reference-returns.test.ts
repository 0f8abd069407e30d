import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { FINGERPRINT_SEED } from '../../grading.ts';
import { splitOfSeed } from '../../scenario.ts';
import { drawRequests } from '../episode-requests.ts';
import { anyAction } from '../random-actions.fixture.ts';
import { scaleArrivals } from '../scenario.ts';
import { TASK_IDS } from '../schema.ts';
import { ServeEpisode } from '../serve-episode.ts';
import { SERVE_TASKS } from '../serve-task.ts';
import {
  constantReturn,
  episodeAnchors,
  referenceConfigurations,
  returnBound,
  type SeedReturns,
  serveReturns,
} from './serve-anchors.ts';

const LEAST_ROOM = { static_workload: 0, bursty_workload: 0.08, adversarial_multitenant: 0.12 };

describe('the recorded returns', () => {
  for (const taskId of TASK_IDS) {
    const task = SERVE_TASKS[taskId];
    const reference = serveReturns.reference(taskId);
    assert.ok(reference);
    const seeds = Object.keys(reference.seeds).map(Number);

    it(`data: are those of this task on this simulator; if not, \`benchmarks/run.ts references\` makes them anew (${taskId})`, () => {
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
