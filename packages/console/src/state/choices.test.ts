import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { LARGEST_SEED, readChoices, writeChoices } from './choices.ts';

describe('the choices in the address', () => {
  it('come back as they were written', () => {
    const choices = { task: 'bursty workload&x', seed: LARGEST_SEED, policy: 'hand' };
    assert.deepEqual(readChoices(writeChoices(choices)), choices);
  });

  for (const seed of ['-1', '1.5', 'abc', '9007199254740993', '99999999999999999999', '']) {
    it(`leave out the seed ${JSON.stringify(seed)}`, () => {
      assert.equal(readChoices(`?seed=${seed}`).seed, undefined);
    });
  }
});
