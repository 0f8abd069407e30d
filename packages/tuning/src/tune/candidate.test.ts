import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { findProfile } from '@servegym/simulator';
import { candidateSpace, candidateText, isPossible, vllmDefaults } from './candidate.ts';

const h100 = findProfile('h100-80gb-llama-3-8b');
const limits = { minQuality: 0, hasPrefixes: true, hasClasses: true, mostReplicas: 2 };

describe('the defaults of vLLM', () => {
  it('are larger on GPUs of 70 GiB and more, but for A100', () => {
    const sizes = (profile: string) => {
      const { maxNumSeqs, maxNumBatchedTokens } = vllmDefaults(findProfile(profile));
      return [maxNumSeqs, maxNumBatchedTokens];
    };
    assert.deepEqual(sizes('h100-80gb-llama-3-8b'), [1024, 8192]);
    assert.deepEqual(sizes('a100-80gb-llama-3-70b-tp4'), [256, 2048]);
    assert.deepEqual(sizes('a100-40gb-llama-3-8b'), [256, 2048]);
  });
});

describe('a candidate', () => {
  it('is possible when an iteration holds a token of each sequence, and KV fits', () => {
    const candidate = { ...vllmDefaults(h100), maxNumSeqs: 512, maxNumBatchedTokens: 512 };
    assert.equal(isPossible(h100, candidate), true);
    assert.equal(isPossible(h100, { ...candidate, maxNumSeqs: 513 }), false);
    assert.equal(isPossible(h100, { ...candidate, kvBudgetFraction: 0 }), false);
  });

  it('is told by what differs from another', () => {
    const defaults = vllmDefaults(h100);
    const changed = { ...defaults, maxNumSeqs: 64, priority: true };
    assert.equal(candidateText(changed, defaults), 'max_num_seqs 64, priority on');
    assert.equal(candidateText(defaults, defaults), 'as vLLM’s defaults');
    assert.match(candidateText(defaults), /^max_num_seqs 1024, .*quantization FP16.*priority off$/);
  });
});

describe('the settings to choose from', () => {
  it('are those that were asked for, and the defaults of the others', () => {
    const space = candidateSpace(h100, { ...limits, knobs: ['weights', 'split'] });
    assert.deepEqual([space.maxNumSeqs, space.priority], [[1024], [false]]);
    assert.deepEqual(space.weights, ['FP16', 'FP8', 'INT8', 'INT4']);
    assert.deepEqual(space.split, [false, true]);
  });

  it('hold weights of the least quality that is allowed', () => {
    const { quality } = h100.weights.INT8!;
    const of = (minQuality: number) =>
      candidateSpace(h100, { ...limits, minQuality, knobs: ['weights'] }).weights.includes('INT8');
    assert.deepEqual([of(quality), of(quality + 1e-9)], [true, false]);
  });

  it('hold no pairs for one engine, and no order of classes where there are none', () => {
    const one = candidateSpace(h100, {
      ...{ ...limits, knobs: ['split', 'priority'] as const, hasClasses: false, mostReplicas: 1 },
    });
    assert.deepEqual([one.split, one.priority], [[false], [false]]);
  });
});
