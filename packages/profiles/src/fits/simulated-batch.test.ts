import assert from 'node:assert/strict';
import { it } from 'node:test';
import { findProfile } from '../data/catalog.ts';
import { BatchSimulator, simulateBatch, withLaw } from './simulated-batch.ts';

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
