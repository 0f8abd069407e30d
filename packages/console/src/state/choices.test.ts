import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { LARGEST_SEED, readChoices, writeChoices } from './choices.ts';

describe('the choices in the address', () => {
  it('come back as they were written', () => {
    const choices = {
      task: 'bursty workload&x',
      seed: LARGEST_SEED,
      policies: ['hand', 'heuristic'],
      options: { shift: 'rate', rate_scale: 1.5, strict: true, config: { a: [1] } },
    };
    assert.deepEqual(readChoices(writeChoices(choices)), choices);
  });

  it('are at most four policies', () => {
    assert.equal(readChoices('?policy=a&policy=b&policy=c&policy=d&policy=e').policies.length, 4);
  });

  for (const seed of ['-1', '1.5', 'abc', '9007199254740993', '99999999999999999999', '']) {
    it(`leave out the seed ${JSON.stringify(seed)}`, () => {
      assert.equal(readChoices(`?seed=${seed}`).seed, undefined);
    });
  }
});
