import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import fc from 'fast-check';
import { decodeFailure, encodeFailure, type Job, JobError } from './job.ts';
import { LocalJobs, ThreadPool } from './local-jobs.ts';

const KINDS = { simulation: new URL('simulation-job.fixture.ts', import.meta.url).href };

describe('jobs on threads of this process', () => {
  let jobs: LocalJobs;
  before(() => {
    jobs = new LocalJobs({ kinds: KINDS, threads: 2 });
  });
  after(() => jobs.close());

  const list: Job[] = Array.from({ length: 12 }, (_, i) => ({
    kind: 'simulation',
    input: { seed: i % 10, requests: 30 },
  }));

  it('gives the same results on one thread and on two, in the order of the jobs', async () => {
    const single = new LocalJobs({ kinds: KINDS, threads: 1 });
    try {
      const results = await jobs.run(list);
      assert.deepEqual(results, await single.run(list));
      assert.deepEqual(results[0], results[10]);
      assert.notDeepEqual(results[0], results[1]);
    } finally {
      await single.close();
    }
  });

  it('tells of every result once, and how far it is', async () => {
    const told: number[] = [];
    const shares: number[] = [];
    await jobs.run(list, {
      onResult: (_, index) => told.push(index),
      onProgress: ({ share }) => shares.push(share),
    });
    assert.deepEqual(
      told.toSorted((a, b) => a - b),
      list.map((_, i) => i),
    );
    assert.deepEqual(
      shares,
      shares.toSorted((a, b) => a - b),
    );
    assert.equal(shares.at(-1), 1);
  });

  it('hears how far a job is', async () => {
    const shares: number[] = [];
    await jobs.run([{ kind: 'simulation', input: { seed: 1, requests: 3, pauseMs: 50 } }], {
      onProgress: ({ share }) => shares.push(share),
    });
    assert.deepEqual(shares, [0.5, 1]);
  });

  it('lets jobs read shared bytes', async () => {
    const name = await jobs.share(new Uint8Array(1000));
    const job = { kind: 'simulation', input: { seed: 0, requests: 1, readsShared: name }, shared: [name] };
    assert.deepEqual(await jobs.run([job]), [1000]);
  });

  it('tells why a job has failed', async () => {
    const failing = { kind: 'simulation', input: { seed: 0, requests: 1, fails: 'no such model' } };
    await assert.rejects(jobs.run([failing]), (error) => {
      assert.ok(error instanceof JobError);
      assert.deepEqual(error.failure, { name: 'RangeError', message: 'no such model' });
      return true;
    });
  });

  it('refuses a kind that it does not know', async () => {
    await assert.rejects(jobs.run([{ kind: 'cooking', input: null }]), {
      code: 'QUEUE_JOB',
      message: /simulation/,
    });
  });

  it('stops what runs when it is told to', async () => {
    const stop = new AbortController();
    const endless = [1, 2, 3].map((seed) => ({
      kind: 'simulation',
      input: { seed, requests: 1, pauseMs: 3_600_000 },
    }));
    const run = jobs.run(endless, { signal: stop.signal, onProgress: () => stop.abort(new Error('enough')) });
    await assert.rejects(run, /enough/);
    assert.equal((await jobs.run(list.slice(0, 1))).length, 1);
  });
});

it('threads forget the oldest shared bytes above a limit, but none that are in use', async (t) => {
  const pool = new ThreadPool(KINDS, 1);
  t.after(() => pool.close());
  const held = () => ['a', 'b', 'c', 'd'].filter((name) => pool.hasShared(name));
  for (const name of ['a', 'b', 'c', 'd']) pool.setShared(name, new Uint8Array(10));
  pool.trimShared(new Set(), 40);
  assert.deepEqual(held(), ['a', 'b', 'c', 'd']);
  pool.trimShared(new Set(['a']), 20);
  assert.deepEqual(held(), ['a', 'd']);
  pool.trimShared(new Set(['a', 'd']), 0);
  assert.deepEqual(held(), ['a', 'd']);
});

describe('the failure of a job, in the message that a queue keeps', () => {
  it('comes out as it went in, whatever its words', () => {
    const failure = fc.record(
      { name: fc.string(), message: fc.string(), code: fc.string(), isInputError: fc.constant(true) },
      { requiredKeys: ['name', 'message'] },
    );
    fc.assert(
      fc.property(failure, (told) => assert.deepEqual(decodeFailure(encodeFailure(told)), { ...told })),
    );
  });

  it('is told apart from a failure of the queue, even where both speak of a connection', () => {
    const job = { name: 'Error', message: 'connect ECONNREFUSED 127.0.0.1:9' };
    assert.deepEqual(decodeFailure(encodeFailure(job)), job);
    for (const message of [
      'Connection is closed.',
      'terminating connection due to administrator command',
      'job stalled more than allowable limit',
      '',
      'null',
      '[]',
      '{"message":"x"}',
      '{"jobFailure":null}',
      '{"jobFailure":{"name":"Error"}}',
    ]) {
      assert.equal(decodeFailure(message), null, message);
    }
  });
});
