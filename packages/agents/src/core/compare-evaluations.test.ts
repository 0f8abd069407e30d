import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { compareEvaluations } from './compare-evaluations.ts';
import { anchorsOf, type Evaluation, evaluationOf, gainFigures } from './evaluate-policy.ts';

const episode = (total: number, standard = 10, clairvoyant = 20, estimated = false) => ({
  return: total,
  anchors: { default: standard, clairvoyant, estimated },
});

describe('gainFigures', () => {
  it('is 0 at the default and 1 at the clairvoyant', () => {
    const figures = (total: number) => gainFigures([[episode(total), episode(total)]])!;
    assert.deepEqual(figures(10), {
      gain: { mean: 0, ci95: [0, 0] },
      worst10: 0,
      belowDefault: 0,
      estimated: false,
    });
    assert.equal(figures(20).gain.mean, 1);
  });

  it('floors nothing: one disaster outweighs good episodes', () => {
    const good = Array.from({ length: 19 }, () => episode(19));
    const { gain, worst10, belowDefault } = gainFigures([[...good, episode(-190)]])!;
    assert.ok(gain.mean < 0);
    assert.ok(gain.ci95[0] < gain.mean && gain.mean < gain.ci95[1]);
    assert.equal(worst10, (-20 + 0.9) / 2);
    assert.equal(belowDefault, 1 / 20);
  });

  it('weighs episodes by their returns, so that traffic with a small gap counts no more', () => {
    const { gain } = gainFigures([[episode(10.09, 10, 10.1), episode(10, 10, 20)]])!;
    assert.ok(Math.abs(gain.mean - 0.09 / 10.1) < 1e-9);
  });

  it('counts tasks alike, whatever their returns are', () => {
    const { gain } = gainFigures([[episode(20)], [episode(1000, 1000, 2000)]])!;
    assert.equal(gain.mean, 0.5);
  });

  it('says when a clairvoyant is estimated, and gives nothing where nothing can be gained', () => {
    assert.equal(gainFigures([[episode(15), episode(15, 10, 20, true)]])!.estimated, true);
    assert.equal(gainFigures([[episode(15)], [episode(10, 10, 10)]]), null);
  });
});

describe('anchorsOf', () => {
  it('reads the anchors of a grade, where it has them', () => {
    const anchors = { default: 1, constant: null, clairvoyant: 2, bound: 3, estimated: true };
    assert.deepEqual(anchorsOf({ anchors }), { default: 1, clairvoyant: 2, estimated: true });
    assert.equal(anchorsOf({ return: 1 }), null);
    assert.equal(anchorsOf({ anchors: { default: 1 } }), null);
  });
});

/** A policy with these scores, task by task, on seeds 0, 1, 2, ... */
function scored(policy: string, ...scores: number[][]): Evaluation {
  const unused = { mean: 0, iqm: 0, ci95: [0, 0] as const };
  const taskIds = ['static_workload', 'bursty_workload'] as const;
  const figures = { return: 0, sloCompliance: 1, costPer1k: 0, preemptions: 0 };
  const tasks = scores.map((ofTask, t) => ({
    ...{ ...figures, taskId: taskIds[t], score: unused, return: unused, regret: null, windowsPerSecond: 1 },
    gains: null,
    episodes: ofTask.map((score, seed) => ({
      ...{ ...figures, taskId: taskIds[t], seed, score, regret: null, anchors: null, windows: 1 },
    })),
  }));
  return { policy, tasks, overall: unused, gains: null };
}

describe('compareEvaluations', () => {
  it('sees a small difference through traffic that differs much', () => {
    const traffic = [0.1, 0.9, 0.3, 0.7, 0.5, 0.2, 0.8, 0.4];
    const better = scored(
      'better',
      traffic.map((score, i) => score + 0.02 + 0.001 * (i % 3)),
    );
    const { comparisons, ranks } = compareEvaluations([scored('plain', traffic), better]);
    const { overall } = comparisons[0];
    assert.ok(overall.mean < -0.02 && overall.mean > -0.023);
    assert.ok(overall.ci95[0] <= overall.mean && overall.mean <= overall.ci95[1] && overall.ci95[1] < 0);
    assert.equal(overall.verdict, 'worse');
    assert.equal(overall.probability, 0);
    assert.deepEqual(ranks, [2, 1]);
  });

  it('does not rank what the episodes cannot tell apart', () => {
    const a = scored('a', [0.5, 0.6, 0.4, 0.5]);
    const b = scored('b', [0.6, 0.5, 0.5, 0.41]);
    const { comparisons, ranks } = compareEvaluations([a, b]);
    assert.equal(comparisons[0].overall.verdict, 'undecided');
    assert.deepEqual(ranks, [1, 1]);
  });

  it('counts a tie as half a win', () => {
    const { comparisons } = compareEvaluations([
      scored('a', [0.5, 0.6, 0.1, 0.9]),
      scored('b', [0.5, 0.6, 0.2, 0.3]),
    ]);
    assert.equal(comparisons[0].overall.probability, (0.5 + 0.5 + 0 + 1) / 4);
  });

  it('ranks by the gain of the returns where there are anchors, so that no floor hides a disaster', () => {
    const returned = (policy: string, ...returns: number[]): Evaluation => {
      const [task] = scored(
        policy,
        returns.map((total) => (total < 0 ? 0.001 : 0.3 + total / 100)),
      ).tasks;
      const anchors = { default: 0, clairvoyant: 10, estimated: false };
      const episodes = task.episodes.map((episode, e) => ({ ...episode, return: returns[e], anchors }));
      return evaluationOf(policy, [{ taskId: task.taskId, episodes, wallSeconds: 1 }]);
    };
    const steady = returned('steady', ...Array.from({ length: 20 }, (_, i) => 5 + (i % 2) / 10));
    const wild = returned('wild', ...Array.from({ length: 20 }, (_, i) => (i % 4 ? 7 : -60)));
    const { measure, ranks, comparisons } = compareEvaluations([steady, wild]);
    assert.ok(wild.overall.iqm > steady.overall.iqm);
    assert.equal(measure, 'gain');
    assert.deepEqual(ranks, [1, 2]);
    assert.ok(
      Math.abs(comparisons[0].overall.mean - (steady.gains!.gain.mean - wild.gains!.gain.mean)) < 1e-9,
    );
  });

  it('compares every pair, on each task and over all', () => {
    const policies = [
      scored('a', [0.25, 0.25], [0.5, 0.5]),
      scored('b', [0.375, 0.375], [0.375, 0.375]),
      scored('c', [0.9, 0.9], [0.9, 0.9]),
    ];
    const { comparisons, ranks } = compareEvaluations(policies);
    assert.deepEqual(
      comparisons.map(({ first, second }) => [first, second]),
      [
        [0, 1],
        [0, 2],
        [1, 2],
      ],
    );
    const [ab] = comparisons;
    assert.deepEqual(
      ab!.tasks.map(({ taskId, difference }) => [taskId, difference.verdict]),
      [
        ['static_workload', 'worse'],
        ['bursty_workload', 'better'],
      ],
    );
    assert.equal(ab!.tasks[0].difference.mean, -0.125);
    assert.equal(ab!.overall.mean, 0);
    assert.deepEqual(ranks, [2, 2, 1]);
  });

  it('profiles how many episodes exceed each score', () => {
    const [profile] = compareEvaluations([
      scored('a', [0.1, 0.5], [0.5, 0.9]),
      scored('b', [0, 0], [0, 0]),
    ]).profiles;
    const shareAt = (threshold: number) => profile!.find((point) => point.threshold === threshold)!.share;
    assert.equal(shareAt(0), 1);
    assert.equal(shareAt(0.1), 0.75);
    assert.equal(shareAt(0.5), 0.25);
    assert.equal(shareAt(1), 0);
  });

  it('refuses policies that played different traffic, or only one', () => {
    assert.throws(
      () => compareEvaluations([scored('a', [0.1]), scored('b', [0.1, 0.2])]),
      /Expected a and b to have played the same tasks and seeds/,
    );
    assert.throws(() => compareEvaluations([scored('a', [0.1])]), /Expected at least two policies, got 1/);
  });
});
