import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PrefixIndex } from './prefix-index.ts';

const prompt = (...ids: number[]) => ({ ids, chunkTokens: 64 });

function matched(index: PrefixIndex, ids: number[], input = ids.length * 64): number[] {
  const tokens = new Float64Array(32);
  index.match(prompt(...ids), input, tokens);
  return [...tokens.subarray(0, 3), tokens[31]];
}

test('a prompt matches as far as each replica was sent its chunks in a row', () => {
  const index = new PrefixIndex();
  index.record(prompt(1, 2, 3), 0);
  index.record(prompt(1, 2, 9), 1);
  index.record(prompt(1), 31);
  assert.deepEqual(matched(index, [1, 2, 3, 4]), [192, 128, 0, 64]);
  assert.deepEqual(matched(index, [1, 2, 3], 150), [150, 128, 0, 64]);
  assert.deepEqual(matched(index, [2, 3]), [128, 64, 0, 0]);
  index.forget(0);
  assert.deepEqual(matched(index, [1, 2, 3]), [0, 128, 0, 64]);
});

test('chunks of different lengths count to their ends', () => {
  const index = new PrefixIndex();
  const tokens = new Float64Array(32);
  index.record({ ids: [5, 6], ends: [320, 400], chunkTokens: 16 }, 2);
  index.match({ ids: [5, 6, 7], ends: [320, 400, 800], chunkTokens: 16, namedTokens: 390 }, 900, tokens);
  assert.equal(tokens[2], 390);
  index.match({ ids: [5, 7], ends: [320, 640], chunkTokens: 16 }, 900, tokens);
  assert.equal(tokens[2], 320);
});

test('what was not used for two generations is forgotten', () => {
  const index = new PrefixIndex();
  index.record(prompt(1), 0);
  index.record(prompt(2), 0);
  for (let id = 10; id < 10 + 2 ** 17; id++) {
    index.record(prompt(id), 1);
    if (id % 1000 === 0) index.record(prompt(1), 2);
  }
  assert.deepEqual(matched(index, [1]), [64, 0, 64, 0]);
  assert.deepEqual(matched(index, [2]), [0, 0, 0, 0]);
});
