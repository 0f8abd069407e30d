import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { RandomStream } from '@servegym/simulator';
import { normalizeRow, RunningNormalizer } from './running-normalizer.ts';

describe('RunningNormalizer', () => {
  it('brings what it has seen to mean 0 and deviation 1', () => {
    const random = new RandomStream(1, 'rows');
    const rows = Float64Array.from({ length: 2000 }, (_, i) =>
      i % 2 === 0 ? 5 + 3 * random.normal() : 1e4 * i,
    );
    const normalizer = new RunningNormalizer(2);
    for (let row = 0; row < 1000; row++) normalizer.observe(rows, row);
    const normalized = new Float64Array(2000);
    for (let row = 0; row < 1000; row++) normalizeRow(rows, row, normalizer.scale(), normalized, row);
    for (const feature of [0, 1]) {
      const values = normalized.filter((_, i) => i % 2 === feature);
      const mean = values.reduce((sum, value) => sum + value, 0) / 1000;
      const variance = values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / 1000;
      assert.ok(
        Math.abs(mean) < 1e-9 && Math.abs(variance - 1) < 1e-3,
        `feature ${feature}: ${mean}, ${variance}`,
      );
    }
  });

  it('clips at ten deviations, also a feature that had never moved', () => {
    const normalizer = new RunningNormalizer(1);
    for (let i = 0; i < 10; i++) normalizer.observe([3], 0);
    const result = new Float64Array(2);
    normalizeRow([3.001], 0, normalizer.scale(), result, 0);
    assert.ok(Math.abs(result[0]) < 0.2);
    normalizeRow([-3], 0, normalizer.scale(), result, 1);
    assert.equal(result[1], -10);
  });

  it('goes on from its moments, bit for bit, also through JSON', () => {
    const normalizer = new RunningNormalizer(2);
    for (let i = 0; i < 7; i++) normalizer.observe([Math.sin(i), Math.exp(i)], 0);
    const restored = RunningNormalizer.from(JSON.parse(JSON.stringify(normalizer.moments)));
    for (const each of [normalizer, restored]) each.observe([0.3, 0.7], 0);
    assert.deepEqual(restored.moments, normalizer.moments);
  });
});
