import assert from 'node:assert/strict';
import { test } from 'node:test';
import { counterEnvironment } from '../fixtures/counter-environment.ts';
import { replayEpisode, replayRecord } from './replay-episode.ts';

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
