import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type LateFinding, LatenessWatch } from './clock.ts';

describe('the watch on lateness', () => {
  function watch(timeScale: number, blocks: readonly number[]): LateFinding[] {
    const findings: LateFinding[] = [];
    const watch = new LatenessWatch(timeScale, (finding) => findings.push(finding));
    for (const wallMs of blocks) for (let i = 0; i < 500; i++) watch.add(wallMs);
    return findings;
  }

  it('tells once, in simulated time, with a scale that fits', () => {
    assert.deepEqual(watch(50, [0.25, 0.5, 0.5, 0.25]), [{ lateMs: 25, allowedMs: 10, fittingScale: 20 }]);
  });

  it('says nothing of the first block, nor of lateness that the scale does not show', () => {
    assert.deepEqual(watch(50, [40]), []);
    assert.deepEqual(watch(50, [40, 0.125, 0.125]), []);
    assert.deepEqual(watch(1, [5, 5, 5]), []);
  });
});
