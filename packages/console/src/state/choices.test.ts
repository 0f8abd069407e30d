import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Task } from '../api/wire.ts';
import { LARGEST_SEED, pickTask, readChoices, writeChoices } from './choices.ts';

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

describe('the task of a visit', () => {
  const task = (id: string | number, difficulty: 'easy' | 'medium' | 'hard') => ({
    id,
    name: '',
    difficulty,
  });
  const tasks = [task(3, 'hard'), task('two', 'easy'), task('one', 'easy')] as unknown as readonly Task[];

  it('is the one asked for, else the first easy one, else the first', () => {
    assert.equal(pickTask(tasks, '3'), '3');
    assert.equal(pickTask(tasks, 'nope'), 'two');
    assert.equal(pickTask(tasks.slice(0, 1), undefined), '3');
    assert.equal(pickTask([], undefined), undefined);
  });
});
