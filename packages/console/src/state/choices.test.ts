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
    assert.deepEqual(readChoices(writeChoices(choices)), { ...choices, faults: [] });
  });

  it('are at most four policies', () => {
    const { policies, faults } = readChoices('?policy=a&policy=b&policy=c&policy=d&policy=e');
    assert.equal(policies.length, 4);
    assert.deepEqual(faults, ['Expected at most 4 policies, got 5.']);
  });

  for (const seed of ['-1', '1.5', 'abc', '9007199254740993', '99999999999999999999', '']) {
    it(`leave out the seed ${JSON.stringify(seed)}, and say so`, () => {
      const choices = readChoices(`?seed=${seed}`);
      assert.equal(choices.seed, undefined);
      assert.match(choices.faults?.[0] ?? '', /Expected the seed to be a whole number from 0 to \d+, got “/);
    });
  }
});
