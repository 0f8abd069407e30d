import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { after, before, describe, it } from 'node:test';
import type { Job, Json } from './job.ts';
import { JobFailedError } from './job-errors.ts';
import { LocalJobs } from './local-jobs.ts';
import {
  postgresPrograms,
  type QueueServer,
  startPostgres,
  startRedis,
  until,
} from './queue-servers.fixture.ts';
import { QueueWorker } from './queue-worker.ts';
import { QueuedJobs } from './queued-jobs.ts';

const KINDS = { simulation: new URL('simulation-job.fixture.ts', import.meta.url).href };
const VERSION = '1.2.3-test';

const programs = postgresPrograms();
const SERVERS: Record<string, () => Promise<QueueServer>> = {
  Redis: startRedis,
  ...(programs !== undefined && { PostgreSQL: () => startPostgres(programs) }),
};

for (const [name, startServer] of Object.entries(SERVERS)) {
  describe(`jobs in a queue on ${name}`, () => {
    let server: QueueServer;
    const workers: ChildProcess[] = [];
    before(async () => {
      server = await startServer();
    });
    after(async () => {
      for (const worker of workers) worker.kill('SIGKILL');
      await server.stop();
    });

    async function startWorkerProcess(): Promise<ChildProcess> {
      const script = new URL('queue-worker-process.fixture.ts', import.meta.url).pathname;
      const worker = spawn(process.execPath, [script, server.url, VERSION, '2000'], {
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      workers.push(worker);
      await once(worker.stdout!, 'data');
      return worker;
    }

    const connect = () => QueuedJobs.connect({ url: server.url, version: VERSION, patienceMs: 1000 });

    it('are all done, each once, while workers are killed and frozen and the server restarts', async (t) => {
      const list: Job[] = Array.from({ length: 1000 }, (_, seed) => ({
        kind: 'simulation',
        input: { seed, requests: 12 },
      }));
      const local = new LocalJobs({ kinds: KINDS, threads: 2 });
      const expected = await local.run(list);
      await local.close();

      const [killed, frozen] = await Promise.all([
        startWorkerProcess(),
        startWorkerProcess(),
        startWorkerProcess(),
      ]);
      const jobs = await connect();
      t.after(() => jobs.close());
      const results = new Map<number, Json>();
      let told = 0;
      const run = jobs.run(list, {
        onResult(result, index) {
          told += 1;
          results.set(index, result);
        },
      });
      await until(() => told >= 100);
      killed.kill('SIGKILL');
      await until(() => told >= 200);
      frozen.kill('SIGSTOP');
      await until(() => told >= 300);
      assert.ok(told < 1000, 'The run must still be under way');
      await server.restart();
      assert.deepEqual(await run, expected);
      // What the frozen one had begun is not told again when it wakes up.
      frozen.kill('SIGCONT');
      assert.deepEqual(await jobs.run(list.slice(0, 50)), expected.slice(0, 50));
      assert.equal(told, 1000);
      assert.deepEqual(
        list.map((_, index) => results.get(index)),
        expected,
      );
    });

    it('give their results to whoever submits them again', async () => {
      const list: Job[] = [1, 2, 3, 4].map((seed) => ({ kind: 'simulation', input: { seed, requests: 17 } }));
      const first = await connect();
      const results = await first.run(list);
      await first.close();
      for (const worker of workers) worker.kill('SIGKILL');
      const second = await connect();
      assert.deepEqual(await second.run(list), results);
      await second.close();
    });

    it('can be cancelled, and run by a later one all the same', async () => {
      const worker = await QueueWorker.start({ url: server.url, version: VERSION, kinds: KINDS, threads: 1 });
      const jobs = await connect();
      const stop = new AbortController();
      const list = [1, 2].map((seed) => ({
        kind: 'simulation',
        input: { seed, requests: 5, pauseMs: 3_600_000 },
      }));
      const run = jobs.run(list, { signal: stop.signal, onProgress: () => stop.abort(new Error('enough')) });
      await assert.rejects(run, /enough/);
      // The only thread is free again.
      const short = [{ kind: 'simulation', input: { seed: 5, requests: 5 } }];
      assert.equal((await jobs.run(short)).length, 1);
      await jobs.close();
      await worker.close();
    });

    it('read shared bytes, and tell why they have failed', async () => {
      const worker = await QueueWorker.start({ url: server.url, version: VERSION, kinds: KINDS, threads: 2 });
      const jobs = await connect();
      const shared = await jobs.share(new Uint8Array(5000));
      const reading = {
        kind: 'simulation',
        input: { seed: 0, requests: 1, readsShared: shared },
        shared: [shared],
      };
      assert.deepEqual(await jobs.run([reading]), [5000]);
      const failing = { kind: 'simulation', input: { seed: 0, requests: 1, fails: 'no such model' } };
      await assert.rejects(jobs.run([failing]), (error) => {
        assert.ok(error instanceof JobFailedError);
        assert.deepEqual(error.failure, { name: 'RangeError', message: 'no such model' });
        return true;
      });
      await jobs.close();
      await worker.close();
    });

    it('are refused by a worker of another version', async () => {
      const jobs = await connect();
      const stop = new AbortController();
      const waiting = jobs.run([{ kind: 'simulation', input: { seed: 99, requests: 5 } }], {
        signal: stop.signal,
      });
      waiting.catch(() => undefined);
      await assert.rejects(
        async () => {
          // The submitter announces itself when it begins.
          for (;;) {
            const worker = await QueueWorker.start({
              url: server.url,
              version: '9.9.9',
              kinds: KINDS,
              threads: 1,
            });
            await worker.close();
          }
        },
        { code: 'QUEUE_VERSION', message: /1\.2\.3-test.*9\.9\.9/ },
      );
      stop.abort();
      await assert.rejects(waiting, { name: 'AbortError' });
      await jobs.close();
    });
  });
}

describe('the address of a queue', () => {
  it('is refused where nobody answers, without its password', async () => {
    for (const scheme of ['redis', 'postgres']) {
      const url = `${scheme}://someone:secret@127.0.0.1:1/0`;
      await assert.rejects(QueuedJobs.connect({ url, version: VERSION }), (error: Error) => {
        assert.equal((error as { code?: string }).code, 'QUEUE_UNREACHABLE');
        assert.match(error.message, /127\.0\.0\.1:1/);
        assert.doesNotMatch(error.message, /secret/);
        return true;
      });
    }
  });

  it('is refused when it is none', async () => {
    for (const url of ['localhost:6379', 'mysql://localhost', '']) {
      await assert.rejects(QueuedJobs.connect({ url, version: VERSION }), { code: 'QUEUE_ADDRESS' });
    }
  });
});
