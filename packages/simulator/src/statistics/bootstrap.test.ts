import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { RandomStream } from '../random/counter-random.ts';
import { blockResamples, percentileInterval, stratifiedBootstrap } from './bootstrap.ts';
import { interquartileMean, quantile } from './summary.ts';

const mean = (values: ArrayLike<number>) =>
  Array.from(values).reduce((sum, value) => sum + value, 0) / values.length;

/** Every resample of `values`, each as likely as the next. */
function everyResample(values: readonly number[], size = values.length): number[][] {
  if (size === 0) return [[]];
  return everyResample(values, size - 1).flatMap((rest) => values.map((value) => [...rest, value]));
}

function exactInterval(estimates: number[], tail: number): [number, number] {
  const sorted = estimates.sort((a, b) => a - b);
  return [quantile(sorted, tail), quantile(sorted, 1 - tail)];
}

function assertClose(actual: readonly number[], expected: readonly number[], tolerance: number) {
  for (const [i, value] of actual.entries()) {
    assert.ok(Math.abs(value - expected[i]) <= tolerance, `${actual} is not near ${expected}`);
  }
}

describe('stratifiedBootstrap', () => {
  it('approaches the interval over all possible resamples', () => {
    const values = [0, 1, 3, 7, 12];
    const exact = exactInterval(everyResample(values).map(interquartileMean), 0.12);
    const interval = stratifiedBootstrap([values], interquartileMean, {
      confidence: 0.76,
      resamples: 40_000,
    });
    assertClose(interval, exact, 1e-9);
  });

  it('resamples each stratum by itself', () => {
    const easy = [10, 11, 12];
    const hard = [0, 1];
    const exact = exactInterval(
      everyResample(easy).flatMap((a) => everyResample(hard).map((b) => mean([...a, ...b]))),
      0.025,
    );
    assertClose(stratifiedBootstrap([easy, hard], mean, { resamples: 40_000 }), exact, 0.05);
    assert.deepEqual(stratifiedBootstrap([[5, 5], [1]], mean), [11 / 3, 11 / 3]);
  });

  it('gives the same interval for the same seed only', () => {
    const values = Array.from({ length: 20 }, (_, i) => Math.sqrt(i));
    const interval = (seed: number) =>
      stratifiedBootstrap([values], interquartileMean, { resamples: 500, seed });
    assert.deepEqual(interval(1), interval(1));
    assert.notDeepEqual(interval(1), interval(2));
  });

  it('covers the truth about as often as it says', () => {
    const random = new RandomStream(0, 'coverage');
    let covered = 0;
    for (let experiment = 0; experiment < 300; experiment++) {
      const sample = Array.from({ length: 40 }, () => random.normal());
      const [low, high] = stratifiedBootstrap([sample], interquartileMean, {
        resamples: 300,
        seed: experiment,
      });
      if (low <= 0 && high >= 0) covered++;
    }
    assert.ok(covered > 0.89 * 300 && covered < 0.99 * 300, `covered ${covered} of 300`);
  });

  it('refuses an empty stratum', () => {
    assert.throws(() => stratifiedBootstrap([[1], []], mean), /at least one value in each/);
    assert.throws(() => stratifiedBootstrap([], mean), /at least one stratum/);
  });
});

describe('resamples of blocks', () => {
  it('draw as many blocks as there are, each about as often, the same for the same seed', () => {
    const resamples = blockResamples(20, 7);
    assert.equal(resamples.length, 1000);
    const times = new Float64Array(20);
    for (const weights of resamples) {
      assert.equal(
        weights.reduce((sum, weight) => sum + weight, 0),
        20,
      );
      for (const [block, weight] of weights.entries()) times[block] += weight;
    }
    for (const each of times) assert.ok(Math.abs(each - 1000) < 150, `${each}`);
    assert.deepEqual(blockResamples(20, 7), resamples);
    assert.notDeepEqual(blockResamples(20, 8), resamples);
  });
});

describe('the interval of percentiles', () => {
  it('holds the middle 95 % of the values, in whatever order they come', () => {
    const values = Array.from({ length: 1000 }, (_, i) => (i * 37) % 1000);
    assert.deepEqual(percentileInterval(values), { low: 25, high: 975 });
    assert.deepEqual(percentileInterval([3]), { low: 3, high: 3 });
  });
});
