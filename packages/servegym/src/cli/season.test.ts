import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { AGENT_JOB_KINDS } from '@servegym/agents';
import { LocalJobs } from '@servegym/jobs';
import type { SeasonResults } from '@servegym/openenv';
import { rankingForm, seasonDefinition, seasonRanking, seasonScoring } from './season.ts';

describe('the scoring of llmserve', () => {
  it('holds an episode against anchors of its own seed, which their actions earn', async (t) => {
    const definition = await seasonDefinition('llmserve');
    const jobs = new LocalJobs({ kinds: AGENT_JOB_KINDS, threads: 1 });
    t.after(() => jobs.close());
    const scoring = seasonScoring(definition, jobs);
    const reset = { task_id: 'static_workload', seed: 2 ** 52 + 1 };
    const [anchors] = await scoring.anchors([reset]);
    const { default: standard, clairvoyant } = anchors!;
    assert.ok(clairvoyant.return > standard.return);

    const { windows } = definition.tasks!.find(({ id }) => id === reset.task_id) as unknown as {
      windows: number;
    };
    const judged = (actions: readonly unknown[], length = windows) =>
      scoring.judge(
        { reset, actions: Array.from({ length }, (_, i) => actions[Math.min(i, actions.length - 1)]) },
        anchors!,
      );
    const [asDefault, asPlanned, left] = await Promise.all([
      judged(standard.actions),
      judged(clairvoyant.actions),
      judged(clairvoyant.actions, windows - 60),
    ]);
    assert.ok(Math.abs(asDefault.score - 0.2) < 1e-9 && Math.abs(asPlanned.score - 0.95) < 1e-9);
    assert.ok(Math.abs(asPlanned.return - clairvoyant.return) < 1e-9);
    // Windows that were not played cost 1 each.
    assert.ok(left.return < asPlanned.return - 60);
  });
});

const anchor = (total: number) => ({ return: total, actions: [{}] });
const episode = (total: number, score: number, isAnchored = true) => ({
  ...{ task_id: 'a', episode: 0, seed: 1, actions: [], digest: '', done: true, return: total, score },
  anchors: isAnchored ? { default: anchor(0), clairvoyant: anchor(10) } : null,
});
const results = (...submissions: [string, ReturnType<typeof episode>[]][]): SeasonResults => ({
  format: 'openenv-season/2',
  season: {
    ...{ name: 's', environment: { id: 'e', version: '1' }, task_ids: ['a'], episodes: 20, minutes: 1 },
    ...{ created_at: 0, commitment: '' },
  },
  secret: '',
  submissions: submissions.map(([name, episodes], i) => ({
    number: i + 1,
    name,
    receipt: '',
    order: [],
    episodes,
  })),
});

describe('the ranking of a season', () => {
  it('goes by the gain of the mean return, in which a disaster counts in full', () => {
    const wild = Array.from({ length: 20 }, (_, i) => (i === 0 ? episode(-300, 0.01) : episode(7.5, 0.8)));
    const steady = Array.from({ length: 20 }, () => episode(5, 0.5));
    const ranking = seasonRanking(results(['wild', wild], ['steady', steady]));
    assert.deepEqual(
      rankingForm
        .json(ranking)
        .map(({ rank, name, gain, below_default, finished, tasks }) => [
          ...[rank, name, gain!.mean, below_default, finished, Object.keys(tasks).length],
        ]),
      [
        [1, 'steady', 0.5, 0, 20, 1],
        [2, 'wild', (19 * 0.75 - 30) / 20, 1 / 20, 20, 1],
      ],
    );
    assert.match(
      rankingForm.text(ranking),
      /^ *1 +steady +0\.500 +0\.500 \.\. 0\.500 +0\.500 +0 % +0\.500 +20 of 20$/m,
    );
  });

  it('goes by the score where an environment has no anchors, and shares ranks', () => {
    const ranking = seasonRanking(
      results(
        ['a', [episode(1, 0.4, false)]],
        ['b', [episode(2, 0.6, false)]],
        ['c', [episode(3, 0.6, false)]],
      ),
    );
    assert.deepEqual(
      ranking.map(({ rank, name, gains }) => [rank, name, gains]),
      [
        [1, 'b', null],
        [1, 'c', null],
        [3, 'a', null],
      ],
    );
  });
});
