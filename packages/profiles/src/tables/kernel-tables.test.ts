import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { IterationTimer, TICKS_PER_US } from '@servegym/simulator';
import { findProfile } from '../data/catalog.ts';
import { timeAt } from './kernel-tables.ts';

/**
 * Iterations of Llama-3.1-8B on an RTX 4090, summed from kernel times of LLMServingSim (casys-kaist, MIT): prompt
 * tokens, of which cached before, decoding sequences, context of each, ms.
 */
const MEASURED_ITERATIONS: readonly (readonly [number, number, number, number, number])[] = [
  [0, 0, 1, 512, 16.78],
  [0, 0, 1, 8192, 17.55],
  [0, 0, 4, 2048, 18.43],
  [0, 0, 8, 1024, 18.56],
  [0, 0, 16, 512, 18.87],
  [0, 0, 16, 2048, 22.4],
  [0, 0, 32, 512, 21.54],
  [0, 0, 32, 1024, 23.92],
  [0, 0, 64, 512, 24.77],
  [0, 0, 128, 256, 26.74],
  [256, 0, 0, 0, 25.53],
  [512, 0, 0, 0, 48.31],
  [1024, 0, 0, 0, 95.47],
  [2048, 0, 0, 0, 193],
  [512, 2048, 0, 0, 52.3],
  [1024, 4096, 0, 0, 111.9],
  [256, 0, 16, 1024, 41.46],
  [512, 0, 32, 512, 65.39],
  [1024, 0, 16, 512, 110.3],
  [1024, 1024, 8, 1024, 108.3],
  [2048, 0, 32, 512, 201.4],
  [512, 1024, 64, 512, 74.44],
];
/** CPU work between two iterations, ms. */
const ENGINE_OVERHEAD_MS = 0.8;

describe('times of kernels', () => {
  it('made a profile that predicts iterations of an RTX 4090', () => {
    const timer = new IterationTimer(findProfile('rtx4090-24gb-llama-3-8b').weights.FP16!.law);
    const errors = MEASURED_ITERATIONS.map(([prompt, cached, decodes, context, ms]) => {
      const attention = prompt * (cached + prompt / 2);
      const ticks =
        timer.fixedTicks(prompt + decodes, decodes, attention) +
        timer.contextTicks(decodes, prompt) * decodes * context;
      return 100 * (ticks / TICKS_PER_US / 1000 / (ms + ENGINE_OVERHEAD_MS) - 1);
    });
    const size = errors.reduce((sum, error) => sum + Math.abs(error), 0) / errors.length;
    const bias = errors.reduce((sum, error) => sum + error, 0) / errors.length;
    assert.ok(size < 4, `${size} %`);
    assert.ok(Math.abs(bias) < 1, `${bias} %`);
    for (const error of errors) assert.ok(Math.abs(error) < 14, `${errors}`);
  });

  it('interpolates between the sizes measured, and goes on beyond them', () => {
    const times = [
      { size: 1, us: 10 },
      { size: 3, us: 20 },
      { size: 5, us: 60 },
    ];
    assert.equal(timeAt(times, 1), 10);
    assert.equal(timeAt(times, 2), 15);
    assert.equal(timeAt(times, 3), 20);
    assert.equal(timeAt(times, 6), 80);
  });
});
