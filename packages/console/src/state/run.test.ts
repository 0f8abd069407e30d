import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Client } from '../api/client.ts';
import { fakeServer } from './fake-server.fixture.ts';
import { Run } from './run.ts';

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
