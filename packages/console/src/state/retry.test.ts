import assert from 'node:assert/strict';
import { it } from 'node:test';
import { retryDelayMs, sleepUntilWoken } from './retry.ts';

it('the pauses between attempts grow, and stay below ten seconds', () => {
  const delays = Array.from({ length: 12 }, (_, attempt) => retryDelayMs(attempt));
  for (let i = 1; i < delays.length; i++) assert.ok(delays[i] >= delays[i - 1]);
  assert.ok(delays[0] < 1000 && delays[11] < 10_000);
});

it('a pause ends when it is woken', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  await sleepUntilWoken(1e9, Promise.resolve());
});
