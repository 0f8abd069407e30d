import assert from 'node:assert/strict';
import { after, describe, it, test } from 'node:test';
import { counterEnvironment } from '../fixtures/counter-environment.ts';
import { ask as askServer } from '../fixtures/start-server.ts';
import { type EpisodeFile, replayEpisode, replayRecord } from '../sessions/episode.ts';
import { createServer } from './create-server.ts';
import { mountEpisodeRoutes } from './episode-routes.ts';

const server = createServer(counterEnvironment);
mountEpisodeRoutes(server);
after(() => server.close());

const ask = (path: string, body?: unknown) => askServer(server, path, body);

/** Plays the amounts on a new session and returns the file of its episode. */
async function played(...amounts: number[]): Promise<{ id: string; file: EpisodeFile; answers: object[] }> {
  const { body } = await ask('/reset', { seed: 3 });
  const answers: object[] = [];
  for (const amount of amounts) {
    const { body: step } = await ask('/step', { session_id: body.session_id, action: { amount } });
    const { session_id, ...answer } = step;
    answers.push(answer);
  }
  const { body: file } = await ask(`/episodes/${body.session_id}`);
  return { id: body.session_id, file, answers };
}

describe('an episode file', () => {
  it('replays to the same answers, is verified, and can be played on', async () => {
    const { file, answers } = await played(4, 2, 5);
    const opened = await ask('/episodes', file);
    assert.equal(opened.status, 200);
    assert.equal(opened.body.verified, true);
    assert.equal(opened.body.digest, file.digest);
    assert.deepEqual(
      opened.body.windows.slice(1).map(({ action, ...answer }: { action: object }) => answer),
      answers,
    );
    const on = await ask('/step', { session_id: opened.body.session_id, action: { amount: 1 } });
    assert.equal(on.body.observation.total, 3 + 4 + 2 + 5 + 1);
  });

  it('is not verified when an action of it was changed', async () => {
    const { file } = await played(4, 2, 5);
    const forged = { ...file, actions: [...file.actions.slice(0, 2), { amount: 6 }] };
    const { body } = await ask('/episodes', forged);
    assert.equal(body.verified, false);
    assert.notEqual(body.digest, file.digest);
  });

  it('without a digest or an environment is played, neither verified nor refused', async () => {
    const { digest, environment, ...file } = (await played(1)).file;
    const { body } = await ask('/episodes', file);
    assert.equal(body.verified, null);
    assert.equal(body.digest, digest);
  });

  it('answers only the results from a window on, when asked', async () => {
    const { file, answers } = await played(1, 2, 3);
    const { body } = await ask('/episodes', { ...file, windows_from: 3 });
    assert.equal(body.windows.length, 1);
    assert.deepEqual(body.windows[0].observation, (answers[2] as { observation: object }).observation);
  });

  it('has the same digest however the keys of its actions are ordered', async () => {
    const { file } = await played(2);
    const { body } = await ask('/episodes', { ...file, actions: [{ weight: 1, note: '', amount: 2 }] });
    assert.equal(body.verified, true);
  });
});

describe('an episode that cannot be played', () => {
  it('of another environment is refused', async () => {
    const { file } = await played(1);
    const { status, body } = await ask('/episodes', { ...file, environment: { id: 'chess', version: '1' } });
    assert.equal(status, 409);
    assert.equal(body.code, 'FOREIGN_EPISODE');
    assert.match(body.detail, /chess/);
  });

  it('names the action that the schema refuses', async () => {
    const { file } = await played(1);
    const { status, body } = await ask('/episodes', { ...file, actions: [{ amount: 1 }, { amount: 99 }] });
    assert.equal(status, 422);
    assert.deepEqual(body.detail[0].loc, ['body', 'actions', 1, 'amount']);
  });

  it('names the action that the environment refuses, and leaves no session behind', async () => {
    const { file } = await played(1);
    const before = server.sessions.size;
    const actions = [...file.actions, { amount: 1, note: 'refuse' }];
    const { status, body } = await ask('/episodes', { ...file, actions });
    assert.equal(status, 400);
    assert.equal(body.code, 'UNPLAYABLE_EPISODE');
    assert.match(body.detail, /Action 1 of 2/);
    assert.equal(server.sessions.size, before);
  });

  it('goes on after its end is refused too', async () => {
    const { body } = await ask('/reset', { seed: 3, target: 5 });
    await ask('/step', { session_id: body.session_id, action: { amount: 9 } });
    const { body: file } = await ask(`/episodes/${body.session_id}`);
    const { status } = await ask('/episodes', { ...file, actions: [...file.actions, { amount: 1 }] });
    assert.equal(status, 400);
  });

  it('of a session that is unknown or was never reset is told so', async () => {
    assert.equal((await ask('/episodes/nobody')).status, 404);
    const session = server.sessions.open();
    const { status, body } = await ask(`/episodes/${session.id}`);
    assert.equal(status, 409);
    assert.equal(body.code, 'NOT_RESET');
  });
});

const action = (amount: number, note = '') => ({ amount, note, mode: 'plain', weight: 1 }) as const;
const record = { reset: { seed: 3, target: 12 }, actions: [action(4), action(5)] };

test('a replay sums the rewards, and tells whether the episode ended', async () => {
  const { return: total, done, digest } = await replayRecord(counterEnvironment, record);
  assert.ok(Math.abs(total - 0.9) < 1e-12);
  assert.equal(done, true);
  assert.match(digest, /^sha256:[0-9a-f]{64}$/);
  const shorter = await replayRecord(counterEnvironment, { ...record, actions: [action(4)] });
  assert.deepEqual([shorter.return, shorter.done], [0.4, false]);
});

test('a replay shows each answer with its number, that to the reset as 0', async () => {
  const seen: [number, object][] = [];
  await replayEpisode(counterEnvironment.create(), record, undefined, ({ observation }, index) =>
    seen.push([index, observation]),
  );
  assert.deepEqual(seen, [
    [0, { total: 3, note: 'ready' }],
    [1, { total: 7, note: '' }],
    [2, { total: 12, note: '' }],
  ]);
});

test('a replay names the action that cannot be played, and passes other errors on', async () => {
  const refused = { ...record, actions: [action(1), action(1, 'refuse')] };
  await assert.rejects(replayRecord(counterEnvironment, refused), {
    code: 'UNPLAYABLE_EPISODE',
    message: /^Action 1 of 2 cannot be played: This note is refused/,
  });
  const failing = { ...record, actions: [action(1, 'boom')] };
  await assert.rejects(replayRecord(counterEnvironment, failing), {
    name: 'Error',
    message: 'boom happened',
  });
});
