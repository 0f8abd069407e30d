import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { IterationLaw } from '@servegym/simulator';
import { Matrix } from 'ml-matrix';
import { findProfile } from '../data/catalog.ts';
import { coefficientOf, coefficientsOf, fitLaw, LAW_COEFFICIENTS, type LawPrior, mapLaw } from './fit-law.ts';
import { leastSquares } from './least-squares.ts';
import { simulateBatch, withLaw } from './simulated-batch.ts';

const profile = findProfile('a100-40gb-llama-3-8b');
const truth = profile.weights.FP16!.law;
const wide = Object.fromEntries(LAW_COEFFICIENTS.map((name) => [name, 1])) as LawPrior['spread'];

/** Measurements of a server under the true law. */
function observe(batch: number, inputTokens: number, outputTokens: number) {
  const shape = { batch, inputTokens, outputTokens };
  return {
    measuredS: simulateBatch(withLaw(profile, 'FP16', truth), 'FP16', shape),
    predictS: (law: IterationLaw) => simulateBatch(withLaw(profile, 'FP16', law), 'FP16', shape),
  };
}

describe('fitting a law', () => {
  it('finds the law behind measurements that determine it, from a start that is far off', () => {
    const shapes = [
      [1, 16, 1],
      [1, 64, 512],
      [1, 8000, 2],
      [1, 120_000, 2],
      [8, 4096, 2],
      [64, 16, 512],
      [200, 16, 64],
      [64, 1024, 256],
      [256, 16, 4],
      [4, 30_000, 100],
    ] as const;
    const start = mapLaw(truth, (value, name) => value * (name.startsWith('per') ? 1.8 : 0.6));
    const { law, determined } = fitLaw(
      shapes.map(([batch, input, output]) => observe(batch, input, output)),
      { law: start, spread: wide },
    );
    // Small batches show launch and weight reads together; what tells them apart is slight.
    const smallest = (of: IterationLaw) => of.baseUs + of.weightReadUs;
    assert.ok(Math.abs(smallest(law) / smallest(truth) - 1) < 0.02, `${smallest(law)}`);
    for (const name of coefficientsOf(truth).slice(2)) {
      assert.ok(
        Math.abs(coefficientOf(law, name)! / coefficientOf(truth, name)! - 1) < 0.05,
        `${name}: ${coefficientOf(law, name)} for ${coefficientOf(truth, name)}`,
      );
      assert.ok(determined[name]! > 0.8, `${name} is ${determined[name]} determined`);
    }
  });

  it('stays at the prior where the measurements say nothing, and says so', () => {
    const start = mapLaw(truth, (value) => value * 1.3);
    const { law, determined } = fitLaw([observe(1, 16, 512)], { law: start, spread: wide });
    assert.ok(determined.perPrefillAttentionNs! < 0.01);
    assert.ok(Math.abs(law.perPrefillAttentionNs / start.perPrefillAttentionNs - 1) < 0.01);
    assert.ok(determined.weightReadUs! > determined.perTokenUs!);
  });

  it('is the prior itself without measurements', () => {
    const { law } = fitLaw([], { law: truth, spread: wide });
    for (const name of coefficientsOf(truth))
      assert.ok(Math.abs(coefficientOf(law, name)! / coefficientOf(truth, name)! - 1) < 1e-12);
  });
});

it('takes slopes that are known instead of measuring them', () => {
  const slopes = [
    [1, 2],
    [3, -1],
    [0, 1],
  ];
  // Finite differences move one parameter alone.
  const movedAlone: string[] = [];
  const residualsAt = ([x, y]: readonly number[]) => {
    if ((x === 0) !== (y === 0)) movedAlone.push(`${x}, ${y}`);
    return slopes.map(([a, b], row) => a * x + b * y - [8, 3, 3][row]);
  };
  const { parameters } = leastSquares(residualsAt, [0, 0], { slopes: new Matrix(slopes) });
  assert.deepEqual(
    parameters.map((value) => Number(value.toFixed(6))),
    [2, 3],
  );
  assert.deepEqual(movedAlone, []);
});
