import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Client } from '../api/client.ts';
import type { Task } from '../api/wire.ts';
import { LARGEST_SEED, pickTask, readChoices, writeChoices } from './choices.ts';
import { fakeServer } from './fake-server.fixture.ts';
import { Run } from './run.ts';

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

/** A server that holds back the answers to one kind of request. */
function holding(kind: 'policySteps' | 'grade') {
  const { client } = fakeServer();
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  const held = async (...args: never[]) => {
    const answer = await (client[kind] as (...args: never[]) => Promise<unknown>)(...args);
    await released;
    return answer;
  };
  return { client: { ...client, [kind]: held } as Client, release };
}

describe('an answer that comes after another episode has begun', () => {
  it('adds no windows of the old episode to the new one', async () => {
    const { client, release } = holding('policySteps');
    const run = new Run(client, 0, 'heuristic');
    await run.begin({ seed: 1 }, {});
    const late = run.advance(3);
    await run.begin({ seed: 2 }, {});
    release();
    await late;
    assert.equal(run.played.value, 1);
    await run.advance(3);
    assert.equal(run.played.value, 4);
  });

  it('gives the new episode no grade', async () => {
    const { client, release } = holding('grade');
    const run = new Run(client, 0, 'heuristic');
    await run.begin({ seed: 1 }, {});
    const late = run.score();
    await run.begin({ seed: 2 }, {});
    release();
    await late;
    const grades = [run.grade.value?.score];
    await run.score();
    grades.push(run.grade.value?.score);
    assert.deepEqual(grades, [undefined, 0.4]);
  });
});
