import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, describe, it } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { UnrecoverableError, Worker } from 'bullmq';
import { Redis } from 'ioredis';
import { type RedisProcess, startRedis, startSentinel } from '../../../maintenance/test-servers/redis.ts';
import { type Job, JobError, type Json } from './job.ts';
import { LocalJobs } from './local-jobs.ts';
import { openQueueConnection, type QueuedJob } from './queue-connection.ts';
import { QueueWorker } from './queue-worker.ts';
import { QueuedJobs } from './queued-jobs.ts';

const KINDS = { simulation: new URL('simulation-job.fixture.ts', import.meta.url).href };
const VERSION = '1.2.3-test';

/** A test that waits for what does not come fails, and lets the others run. */
const PATIENCE = { timeout: 90_000 };

describe('jobs in a queue', () => {
  const folder = mkdtempSync(join(tmpdir(), 'servegym-queued-jobs-'));
  let server: RedisProcess | undefined;
  const processes: ChildProcess[] = [];
  const opened: { close(): Promise<unknown> }[] = [];
  before(async () => {
    server = await startRedis();
  }, PATIENCE);
  // Whatever a test that failed has left open would keep this process alive.
  afterEach(async () => {
    await Promise.allSettled(opened.splice(0).map((each) => each.close()));
  }, PATIENCE);
  after(async () => {
    for (const worker of processes) worker.kill('SIGKILL');
    await server?.stop();
    rmSync(folder, { recursive: true });
  }, PATIENCE);

  async function startWorkerProcess(): Promise<ChildProcess> {
    const script = new URL('queue-worker-process.fixture.ts', import.meta.url).pathname;
    const worker = spawn(process.execPath, [script, server!.url, VERSION, '2000'], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    processes.push(worker);
    opened.push({ close: async () => worker.kill('SIGKILL') });
    await new Promise<void>((resolve, reject) => {
      worker.stdout!.once('data', () => resolve());
      worker.once('exit', (code, signal) => reject(new Error(`The worker ended with ${code ?? signal}`)));
    });
    return worker;
  }

  async function startWorker(threads: number): Promise<QueueWorker> {
    const worker = await QueueWorker.start({ url: server!.url, version: VERSION, kinds: KINDS, threads });
    opened.push({ close: () => worker.close(true) });
    return worker;
  }

  async function connect(): Promise<QueuedJobs> {
    const jobs = await QueuedJobs.connect({ url: server!.url, version: VERSION, patienceMs: 1000 });
    opened.push(jobs);
    return jobs;
  }

  it(
    'are all done, each once, while workers are killed and frozen and the server restarts',
    PATIENCE,
    async () => {
      // All three workers get stuck in the middle, with 697 jobs waiting, until the gate opens.
      const gate = join(folder, 'gate');
      const stuck = [300, 301, 302];
      const list: Job[] = Array.from({ length: 1000 }, (_, seed) => ({
        kind: 'simulation',
        input: { seed, requests: 12, ...(stuck.includes(seed) && { waitsFor: gate }) },
      }));
      writeFileSync(gate, '');
      const local = new LocalJobs({ kinds: KINDS, threads: 2 });
      opened.push(local);
      const expected = await local.run(list);
      rmSync(gate);

      const [killed, frozen] = await Promise.all([
        startWorkerProcess(),
        startWorkerProcess(),
        startWorkerProcess(),
      ]);
      const jobs = await connect();
      const results = new Map<number, Json>();
      let told = 0;
      let share = 0;
      const run = jobs.run(list, {
        onResult(result, index) {
          told += 1;
          results.set(index, result);
        },
        onProgress: (progress) => {
          share = progress.share;
        },
      });
      run.catch(() => undefined);
      await until('all workers hold a job', () => told === 300 && share > 0.30149);
      killed.kill('SIGKILL');
      frozen.kill('SIGSTOP');
      await server!.restart();
      writeFileSync(gate, '');
      assert.deepEqual(await run, expected);
      // Jobs that the frozen one had begun are not told again when it wakes up.
      frozen.kill('SIGCONT');
      assert.deepEqual(await jobs.run(list.slice(0, 50)), expected.slice(0, 50));
      assert.equal(told, 1000);
      assert.deepEqual(
        list.map((_, index) => results.get(index)),
        expected,
      );
    },
  );

  it('give their results to whoever submits them again', PATIENCE, async () => {
    const list: Job[] = [1, 2, 3, 4].map((seed) => ({ kind: 'simulation', input: { seed, requests: 17 } }));
    const worker = await QueueWorker.start({
      url: server!.url,
      version: VERSION,
      kinds: KINDS,
      threads: 1,
    });
    const first = await connect();
    const results = await first.run(list);
    await worker.close();
    const second = await connect();
    assert.deepEqual(await second.run(list), results);
  });

  it('go on when their submitter is killed, for whoever submits them again', PATIENCE, async () => {
    const gate = join(folder, 'second-gate');
    // The fourth waits until the submitter is gone; those behind it wait for the only thread.
    const list: Job[] = [21, 22, 23, 24, 25, 26].map((seed) => ({
      kind: 'simulation',
      input: { seed, requests: 9, ...(seed === 24 && { waitsFor: gate }) },
    }));
    await startWorker(1);
    const program = `import { QueuedJobs } from ${JSON.stringify(new URL('queued-jobs.ts', import.meta.url).href)};
      const jobs = await QueuedJobs.connect(${JSON.stringify({ url: server!.url, version: VERSION })});
      let told = 0;
      const say = () => told >= 3 && process.stdout.write('three are done');
      await jobs.run(${JSON.stringify(list)}, { onResult: () => (told++, say()) });`;
    const submitter = spawn(process.execPath, ['--input-type=module', '--eval', program], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    processes.push(submitter);
    await once(submitter.stdout, 'data');
    submitter.kill('SIGKILL');
    await once(submitter, 'exit');
    writeFileSync(gate, '');
    const local = new LocalJobs({ kinds: KINDS, threads: 1 });
    opened.push(local);
    assert.deepEqual(await (await connect()).run(list), await local.run(list));
  });

  it('can be cancelled, and run by a later one all the same', PATIENCE, async () => {
    await startWorker(1);
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
  });

  it('read shared bytes, and tell why they have failed', PATIENCE, async () => {
    await startWorker(2);
    const jobs = await connect();
    const shared = await jobs.share(new Uint8Array(5000));
    const reading = {
      kind: 'simulation',
      input: { seed: 0, requests: 1, readsShared: shared },
      shared: [shared],
    };
    assert.deepEqual(await jobs.run([reading]), [5000]);
    const failing = { kind: 'simulation', input: { seed: 0, requests: 1, fails: 'Connection is closed' } };
    await assert.rejects(jobs.run([failing]), (error) => {
      assert.ok(error instanceof JobError);
      assert.deepEqual(error.failure, { name: 'RangeError', message: 'Connection is closed' });
      return true;
    });
    const unread = { kind: 'simulation', input: { seed: 1, requests: 1 }, shared: ['nobody-shared-these'] };
    await assert.rejects(jobs.run([unread]), {
      code: 'JOB_FAILED',
      failure: {
        name: 'JobError',
        code: 'QUEUE_JOB',
        isInputError: true,
        message: 'The bytes `nobody-shared-these` of the job are gone. Submit it again',
      },
    });
    const ending = { kind: 'simulation', input: { seed: 2, requests: 1, exits: true } };
    await assert.rejects(jobs.run([ending]), { code: 'JOB_FAILED', message: /exit/i });
  });

  it(
    'are submitted again when the queue has failed and not the job, and given up in the end',
    PATIENCE,
    async () => {
      const job = (seed: number) => ({ kind: 'simulation', input: { seed, requests: 9 } });
      const isLast = (input: Json) => (input as { seed: number }).seed === 2;
      const jobs = await connect();
      // A worker of the queue alone, whose connection breaks before it can tell how a job went.
      const connection = await openQueueConnection(server!.url, VERSION);
      let broken = 0;
      const unlucky = new Worker<QueuedJob>(
        connection.name,
        async ({ data }) => {
          broken += 1;
          if (isLast(data.input)) await unlucky.pause(true);
          throw new UnrecoverableError('the connection was torn');
        },
        { connection: connection.redis, lockDuration: 2000 },
      );
      unlucky.on('error', () => undefined);
      opened.push({
        async close() {
          await unlucky.close(true);
          connection.redis.disconnect();
        },
      });
      await assert.rejects(jobs.run([job(1)]), {
        code: 'QUEUE_LOST_JOB',
        message: /failed 6 times with the same `simulation` job, the last time with: the connection was torn/,
      });
      assert.equal(broken, 6);

      const run = jobs.run([job(2)]);
      run.catch(() => undefined);
      await until('the job is lost once', () => broken === 7);
      await startWorker(1);
      const local = new LocalJobs({ kinds: KINDS, threads: 1 });
      opened.push(local);
      assert.deepEqual(await run, await local.run([job(2)]));
    },
  );

  it('are refused by a worker of another version', PATIENCE, async (t) => {
    const jobs = await connect();
    const stop = new AbortController();
    t.after(() => stop.abort());
    const waiting = jobs.run([{ kind: 'simulation', input: { seed: 99, requests: 5 } }], {
      signal: stop.signal,
    });
    waiting.catch(() => undefined);
    await assert.rejects(
      async () => {
        // The submitter announces itself when it begins.
        while (!t.signal.aborted) {
          const worker = await QueueWorker.start({
            url: server!.url,
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
  });
});

describe('the address of a queue', () => {
  it('may be that of Sentinels, who tell where it has moved', PATIENCE, async (t) => {
    const primary = await startRedis();
    const replica = await startRedis('--replicaof', '127.0.0.1', new URL(primary.url).port);
    const sentinel = await startSentinel(primary);
    const { hostname: host, port } = new URL(sentinel.url);
    const url = { sentinels: [{ host, port: Number(port) }], name: 'sessions' };
    const watch = new Redis(sentinel.url);
    const seen = async () => ((await watch.call('SENTINEL', 'replicas', 'sessions')) as string[][])[0];
    while (!(await seen())?.includes('ok')) await pause(20);
    const worker = await QueueWorker.start({ url, version: VERSION, kinds: KINDS, threads: 1 });
    const jobs = await QueuedJobs.connect({ url, version: VERSION });
    t.after(async () => {
      watch.disconnect();
      await worker.close(true);
      await jobs.close();
      for (const server of [sentinel, replica, primary]) await server.stop();
    });
    const list = (seed: number) => [{ kind: 'simulation', input: { seed, requests: 12 } }];
    assert.equal((await jobs.run(list(0))).length, 1);
    process.kill(primary.pid, 'SIGKILL');
    assert.equal((await jobs.run(list(1))).length, 1);
  });

  it('is refused where nobody answers, without its password', async () => {
    const url = 'redis://someone:secret@127.0.0.1:1/0';
    await assert.rejects(QueuedJobs.connect({ url, version: VERSION }), (error: Error) => {
      assert.equal((error as { code?: string }).code, 'QUEUE_UNREACHABLE');
      assert.match(error.message, /127\.0\.0\.1:1/);
      assert.doesNotMatch(error.message, /secret/);
      return true;
    });
  });

  it('is refused when it is none', async () => {
    for (const url of ['localhost:6379', 'mysql://localhost', 'postgres://localhost/db', '']) {
      await assert.rejects(QueuedJobs.connect({ url, version: VERSION }), { code: 'QUEUE_ADDRESS' });
    }
  });
});

/** Waits until something is so. @throws when it is not after a minute */
async function until(what: string, isSo: () => boolean): Promise<void> {
  const end = performance.now() + 60_000;
  while (!isSo()) {
    if (performance.now() > end) throw new Error(`Waited a minute in vain until ${what}`);
    await pause(20);
  }
}
