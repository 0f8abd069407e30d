import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { mountEpisodeRoutes } from '../episodes/episode-routes.ts';
import { counterEnvironment } from '../fixtures/counter-environment.ts';
import { createServer } from '../server/create-server.ts';
import { Leaderboard, RUNS_PER_BOARD } from './leaderboard.ts';
import { mountLeaderboardRoutes } from './leaderboard-routes.ts';

const server = createServer(counterEnvironment);
const leaderboard = new Leaderboard(':memory:');
mountEpisodeRoutes(server);
mountLeaderboardRoutes(server, leaderboard);
after(async () => {
  leaderboard.close();
  await server.close();
});

async function ask(path: string, body?: unknown) {
  const answer = await server.app.request(path, {
    ...(body !== undefined && {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    }),
  });
  return { status: answer.status, body: await answer.json() };
}

/** Plays `short` to its end with steps of one size. */
async function finished(amount: number, seed = 0, options = {}): Promise<string> {
  const { body } = await ask('/reset', { seed, task_id: 'short', ...options });
  let done = false;
  while (!done) {
    ({
      body: { done },
    } = await ask('/step', { session_id: body.session_id, action: { amount } }));
  }
  return body.session_id;
}

describe('the leaderboard', () => {
  it('ranks runs by the scores that the server gives them', async () => {
    const worse = await ask('/leaderboard', { session_id: await finished(10, 1), name: 'Ada' });
    const better = await ask('/leaderboard', { session_id: await finished(9, 2), name: 'Bob' });
    assert.equal(worse.status, 200);
    assert.equal(better.body.entry.rank <= 2, true);
    const { body } = await ask('/leaderboard?task_id=short');
    const scores = body.entries.map(({ score }: { score: number }) => score);
    assert.deepEqual(
      scores,
      scores.toSorted((a: number, b: number) => b - a),
    );
    assert.deepEqual(
      body.entries.map(({ rank }: { rank: number }) => rank),
      [1, 2],
    );
  });

  it('gives the episode of a run, which replays to the digest on the board', async () => {
    const { body } = await ask('/leaderboard', { session_id: await finished(7, 3), name: 'Eve' });
    const { body: file } = await ask(`/leaderboard/${body.entry.id}`);
    assert.equal(file.author, 'Eve');
    const opened = await ask('/episodes', file);
    assert.equal(opened.body.verified, true);
    assert.equal(opened.body.digest, body.entry.digest);
  });

  it('takes the same run of the same person once', async () => {
    const first = await ask('/leaderboard', { session_id: await finished(6, 4), name: 'Ada' });
    const again = await ask('/leaderboard', { session_id: await finished(6, 4), name: 'Ada' });
    assert.equal(again.body.entry.id, first.body.entry.id);
  });

  it('takes no episode that is not over, and no name that says nothing', async () => {
    const { body } = await ask('/reset', { seed: 1, task_id: 'short' });
    const open = await ask('/leaderboard', { session_id: body.session_id, name: 'Ada' });
    assert.equal(open.status, 409);
    assert.equal(open.body.code, 'EPISODE_NOT_OVER');
    assert.equal((await ask('/leaderboard', { session_id: body.session_id, name: '  ' })).status, 422);
    assert.equal((await ask('/leaderboard', { session_id: 'nobody', name: 'Ada' })).status, 404);
    assert.equal((await ask('/leaderboard/999999')).status, 404);
    assert.equal((await ask('/leaderboard?seed=x')).status, 422);
  });

  it('holds runs only against runs of the same scenario', async () => {
    const session_id = await finished(1, 60, { target: 11 });
    const { body } = await ask('/leaderboard', { session_id, name: 'Ada' });
    assert.deepEqual([body.entry.rank, body.entry.scenario], [1, '{"target":11}']);
  });

  it('filters by task and seed, and shows runs of its own version only', async () => {
    await ask('/leaderboard', { session_id: await finished(5, 50), name: 'Ada' });
    const { body } = await ask('/leaderboard?seed=50');
    assert.equal(body.entries.length, 1);
    assert.deepEqual((await ask('/leaderboard?task_id=long')).body.entries, []);
    assert.deepEqual(leaderboard.list({ id: 'counter', version: '2' }), []);
  });
});

describe('a full board', () => {
  it('keeps the best runs and says of the others that they are not on it', () => {
    const board = new Leaderboard(':memory:');
    const save = (score: number) =>
      board.save({
        name: 'Ada',
        score,
        return: 0,
        windows: 1,
        episode: {
          format: 'openenv-episode/1',
          environment: { id: 'counter', version: '1' },
          reset: { seed: 1 },
          actions: [],
          digest: `sha256:${score}`,
        },
      });
    for (let i = 1; i <= RUNS_PER_BOARD; i++) assert.equal(save(i / 1000)?.rank, 1);
    assert.equal(save(0.0001), undefined);
    assert.equal(save(0.9)?.rank, 1);
    const kept = board.list({ id: 'counter', version: '1' });
    assert.equal(kept.length, RUNS_PER_BOARD);
    assert.equal(kept.at(-1)?.score, 0.002);
    board.close();
  });
});
