import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { traceSeed } from './trace-schedule.ts';

const schedule = { seed: 1, groupSize: 2, traces: { first: 100, last: 199 } };

function episodes(count: number, environment: number, changes: Partial<typeof schedule> = {}): number[] {
  return Array.from({ length: count }, (_, episode) =>
    traceSeed({ ...schedule, ...changes }, environment, episode),
  );
}

describe('traceSeed', () => {
  it('gives a group the same traces in the same order, and another group others', () => {
    assert.deepEqual(episodes(10, 0), episodes(10, 1));
    assert.notDeepEqual(episodes(10, 1), episodes(10, 2));
    assert.notDeepEqual(episodes(10, 0), episodes(10, 0, { seed: 2 }));
  });

  it('stays within its traces and reaches all of them', () => {
    const drawn = new Set(episodes(2000, 0));
    assert.equal(drawn.size, 100);
    assert.ok([...drawn].every((seed) => seed >= 100 && seed <= 199));
  });
});
