import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { RandomStream } from '../random/counter-random.ts';
import { nestedBootstrap } from './bootstrap.ts';

const mean = (values: ArrayLike<number>) => Array.from(values).reduce((sum, x) => sum + x, 0) / values.length;

function runs(count: number, betweenRuns: number, betweenTraces: number): number[][] {
  const random = new RandomStream(1, 'runs');
  const traces = Array.from({ length: 50 }, () => betweenTraces * random.normal());
  return Array.from({ length: count }, () => {
    const level = betweenRuns * random.normal();
    return traces.map((trace) => level + trace);
  });
}

describe('nestedBootstrap', () => {
  it('is as wide as the chance of the traces, and of the training, makes it', () => {
    const width = ([low, high]: readonly [number, number]) => high - low;
    const byTraces = width(nestedBootstrap(runs(1, 0, 1), mean));
    // 2 * 1.96 / sqrt(50).
    assert.ok(Math.abs(byTraces - 0.554) < 0.12, `${byTraces}`);
    // The same traces for all runs: more runs make nothing surer.
    assert.ok(Math.abs(width(nestedBootstrap(runs(10, 0, 1), mean)) - byTraces) < 0.1);
    const byTraining = width(nestedBootstrap(runs(10, 1, 0), mean));
    // 2 * 1.96 / sqrt(10), of ten draws whose own deviation varies.
    assert.ok(byTraining > 0.6 && byTraining < 1.9, `${byTraining}`);
  });

  it('holds the mean, and is the same each time', () => {
    const some = runs(5, 1, 1);
    const [low, high] = nestedBootstrap(some, mean);
    assert.ok(low < mean(some.flat()) && mean(some.flat()) < high);
    assert.deepEqual(nestedBootstrap(some, mean), [low, high]);
  });

  it('refuses runs on different traces', () => {
    assert.throws(() => nestedBootstrap([[1, 2], [1]], mean), /the same number of traces/);
    assert.throws(() => nestedBootstrap([], mean), /at least one run/);
  });
});
