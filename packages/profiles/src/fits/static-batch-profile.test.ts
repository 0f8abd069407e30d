import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { findProfile } from '../data/catalog.ts';
import { findGpu } from '../data/gpu.ts';
import { findModel } from '../data/model-config.ts';
import { BatchSimulator, type StaticBatchRow, simulateBatch, withLaw } from './simulated-batch.ts';
import { calibrateStaticBatches } from './static-batch-profile.ts';

const truth = findProfile('a100-40gb-llama-3-8b');
const options = {
  gpu: findGpu('A100'),
  model: findModel('llama-3-8b'),
  source: 'a simulated server',
  command: 'servegym profile make',
};

/** Measurements of the catalog's profile, off by a percent, up and down in turn. */
function rowsOf(
  batches: readonly number[],
  lengths: readonly number[],
  weights: 'FP16' | 'INT8' = 'FP16',
): StaticBatchRow[] {
  const precision = weights.toLowerCase();
  return batches.flatMap((batch, i) =>
    lengths.map((tokens, j) => ({
      gpu: 'A100',
      gpus: 1,
      engine: 'vLLM',
      model: 'meta-llama/Meta-Llama-3-8B',
      weights: precision,
      kvCache: precision,
      inputTokens: tokens,
      outputTokens: tokens,
      batch,
      latencyS:
        simulateBatch(truth, weights, { batch, inputTokens: tokens, outputTokens: tokens }) *
        (1 + 0.01 * (-1) ** (i + j)),
    })),
  );
}

describe('calibrating from static batches', () => {
  it('predicts batches between and beyond those it was fitted to', () => {
    const { profile } = calibrateStaticBatches(rowsOf([1, 16, 64], [128, 256, 1024]), options);
    for (const [batch, inputTokens, outputTokens] of [
      [32, 512, 512],
      [8, 2048, 64],
      [64, 64, 1024],
    ] as const) {
      const shape = { batch, inputTokens, outputTokens };
      const error = simulateBatch(profile, 'FP16', shape) / simulateBatch(truth, 'FP16', shape) - 1;
      assert.ok(Math.abs(error) < 0.03, `batch ${batch}: ${error}`);
    }
  });

  it('reports errors of rows it left out, which are no smaller than those of the fit', () => {
    const { profile, rows } = calibrateStaticBatches(rowsOf([1, 16, 64], [128, 256, 1024]), options);
    const fit = profile.fit!;
    assert.equal(fit.rows, 9);
    assert.equal(rows.length, 9);
    assert.ok(fit.meanErrorPercent > 0.1 && fit.meanErrorPercent < 1.2, `${fit.meanErrorPercent}`);
    assert.ok(fit.heldOutMeanErrorPercent >= fit.meanErrorPercent);
    assert.deepEqual(profile.validity, { batch: [1, 64], contextTokens: [1, 2048] });
  });

  it('keeps batches that overflow the KV pool out of the fit, to check it with them', () => {
    const rows = rowsOf([1, 16, 64], [128, 1024, 2048]);
    const { profile, overflowing } = calibrateStaticBatches(rows, options);
    assert.equal(profile.fit!.rows, 8);
    const [row] = overflowing;
    assert.equal(row!.batch, 64);
    assert.ok(Math.abs(row!.predictedS / row!.latencyS - 1) < 0.03);
  });

  it('takes the speed of INT8 from pairs of rows with and without it', () => {
    const fp16 = rowsOf([1, 16, 64], [128, 1024]);
    const pairs = fp16.flatMap((row) => [
      { ...row, engine: 'TensorRT-LLM', kvCache: 'int8' },
      { ...row, engine: 'TensorRT-LLM', kvCache: 'int8', weights: 'int8', latencyS: row.latencyS / 1.5 },
    ]);
    const { profile } = calibrateStaticBatches([...fp16, ...pairs], options);
    const shape = { batch: 1, inputTokens: 1024, outputTokens: 1024 };
    const speedup = simulateBatch(profile, 'FP16', shape) / simulateBatch(profile, 'INT8', shape);
    assert.ok(Math.abs(speedup - 1.5) < 0.06, `${speedup}`);
    assert.match(profile.weights.INT8!.source, /1\.50x at batch 1/);
    assert.equal(profile.weights.INT8!.status, 'estimated');
  });

  it('lets INT4 win small batches and lose its lead where compute decides', () => {
    const speedup = (batch: number, inputTokens: number, outputTokens: number) => {
      const shape = { batch, inputTokens, outputTokens };
      return simulateBatch(truth, 'FP16', shape) / simulateBatch(truth, 'INT4', shape);
    };
    assert.ok(speedup(1, 128, 512) > 1.9);
    assert.ok(speedup(64, 1024, 2) < 1, `${speedup(64, 1024, 2)}`);
  });

  it('refuses too few rows', () => {
    assert.throws(() => calibrateStaticBatches(rowsOf([1], [128, 256, 1024]), options), {
      name: 'ProfileError',
      code: 'CALIBRATION_ROWS',
    });
  });
});

it('simulates batches one after another, under changing laws, as if each were alone', () => {
  const profile = findProfile('a100-40gb-llama-3-8b');
  const laws = [profile.weights.FP16!.law, profile.weights.INT8!.law];
  const simulator = new BatchSimulator(profile, 'FP16');
  const shapes = [
    { batch: 64, inputTokens: 2048, outputTokens: 2048 },
    { batch: 1, inputTokens: 16, outputTokens: 1 },
    { batch: 300, inputTokens: 100, outputTokens: 50 },
    { batch: 16, inputTokens: 3000, outputTokens: 500 },
  ];
  for (const law of [...laws, ...laws]) {
    for (const shape of shapes) {
      assert.equal(
        simulator.seconds(law, shape),
        simulateBatch(withLaw(profile, 'FP16', law), 'FP16', shape),
      );
    }
  }
});
