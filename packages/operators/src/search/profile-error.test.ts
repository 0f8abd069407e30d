import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { chanceWithin } from './profile-error.ts';

describe('the chance that latencies are within their limits', () => {
  const error = { share: 0.2, ttftShare: 0.5 };
  const chance = (ms: number, limitMs: number, metric: 'ttft' | 'tpot' = 'tpot') =>
    chanceWithin([{ metric, ms, limitMs }], error);

  it('is a half at the limit, and 95 % where the logarithm of the room is the error', () => {
    assert.ok(Math.abs(chance(10, 10) - 0.5) < 1e-6);
    assert.ok(Math.abs(chance(10, 10 * Math.exp(0.2)) - 0.95) < 1e-4);
    assert.ok(Math.abs(chance(10 * Math.exp(0.2), 10) - 0.05) < 1e-4);
    assert.ok(chance(100, 90, 'ttft') > chance(100, 90));
  });

  it('multiplies those of several limits', () => {
    const latencies = [
      { metric: 'ttft', ms: 100, limitMs: 100 },
      { metric: 'tpot', ms: 10, limitMs: 10 },
    ] as const;
    assert.ok(Math.abs(chanceWithin(latencies, error) - 0.25) < 1e-6);
  });
});
