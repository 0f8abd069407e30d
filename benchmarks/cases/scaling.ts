import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { createWriteStream, mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Job, type JobEngine, LocalJobs } from '@servegym/jobs';
import { QueuedJobs } from '@servegym/jobs/queue';
import { type RedisProcess, startRedis } from '../../maintenance/test-servers/redis.ts';
import { processorSeconds } from '../child.ts';
import { benchmark, type Row } from '../harness.ts';
import { KINDS, VERSION } from '../jobs/kinds.ts';

export default benchmark({
  what: 'How cost grows: what a job costs beside its work on threads and through a queue, how a sweep gets faster with workers, and what a trace costs in time and memory from 10^4 to 10^7 requests. `--parts jobs,workers,traces`. Starts a Redis of its own.',
  options: {
    parts: 'jobs,workers,traces',
    jobs: 2000,
    sweep: 48,
    workers: [1, 2, 4],
    requests: [10_000, 100_000, 1_000_000, 10_000_000],
  },
  async *run({ parts, jobs, sweep, workers, requests }) {
    const chosen = parts.split(',');
    const redis = await startRedis();
    try {
      if (chosen.includes('jobs')) yield* await measureJobs(redis, jobs);
      if (chosen.includes('workers')) yield* await measureWorkers(redis, sweep, workers);
    } finally {
      await redis.stop();
    }
    if (chosen.includes('traces')) yield* measureTraces(requests);
  },
});

/**
 * Jobs of one request each: nearly all of their time is that of the engine. Beside the wall time it tells the processor
 * time of each part, which hardly depends on what else the machine does.
 */
async function measureJobs({ url, pid: server }: RedisProcess, count: number): Promise<Row[]> {
  const rows: Row[] = [];
  const measure = async (
    name: string,
    jobs: JobEngine,
    offset: number,
    others: Readonly<Record<string, number>>,
  ) => {
    const list = (first: number, size: number): Job[] =>
      Array.from({ length: size }, (_, i) => ({
        kind: 'simulation',
        input: { seed: offset + first + i, requests: 1, times: 1 },
      }));
    await jobs.run(list(0, 300));
    const before = Object.entries(others).map(([other, pid]) => [other, processorSeconds(pid)] as const);
    const own = process.cpuUsage();
    const start = performance.now();
    await jobs.run(list(300, count));
    const ms = performance.now() - start;
    const { user, system } = process.cpuUsage(own);
    rows.push({
      engine: name,
      'jobs/s': (1000 * count) / ms,
      'ms a job': ms / count,
      'CPU ms, submitter': (user + system) / 1000 / count,
      ...Object.fromEntries(
        before.map(([other, was]) => [
          `CPU ms, ${other}`,
          (1000 * (processorSeconds(others[other]) - was)) / count,
        ]),
      ),
    });
  };
  for (const threads of [1, 2]) {
    const jobs = new LocalJobs({ kinds: KINDS, threads });
    await measure(`threads: ${threads}`, jobs, 0, {});
    await jobs.close();
  }
  const worker = await startWorker(url);
  const jobs = await QueuedJobs.connect({ url, version: VERSION });
  await measure('Redis, 1 worker', jobs, 100_000, { worker: worker.pid!, server });
  await jobs.close();
  worker.kill('SIGKILL');
  return rows;
}

/**
 * A sweep of jobs of about a quarter of a second. The processor time of everybody together says what workers cost each
 * other; the speed-up says something only where as many cores are idle.
 */
async function measureWorkers(
  { url, pid: server }: RedisProcess,
  count: number,
  workerCounts: readonly number[],
): Promise<Row[]> {
  const rows: Row[] = [];
  let base = 0;
  const measure = async (name: string, jobs: JobEngine, offset: number, others: readonly number[]) => {
    const sweep = (size: number, requests: number, times: number, first: number): Job[] =>
      Array.from({ length: size }, (_, i) => ({
        kind: 'simulation',
        input: { seed: first + 1000 * i + offset, requests, times },
      }));
    // Threads load their modules before the clock runs.
    await jobs.run(sweep(64, 10, 1, 1e9));
    const processorS = () =>
      others.reduce((sum, pid) => sum + processorSeconds(pid), processorSeconds(process.pid));
    const before = processorS();
    const start = performance.now();
    await jobs.run(sweep(count, 2000, 60, 0));
    const s = (performance.now() - start) / 1000;
    base ||= s;
    rows.push({
      engine: name,
      s,
      'speed-up': base / s,
      'CPU, s': processorS() - before,
    });
  };
  for (const [i, threads] of workerCounts.entries()) {
    const jobs = new LocalJobs({ kinds: KINDS, threads });
    await measure(`threads: ${threads}`, jobs, i, []);
    await jobs.close();
  }
  for (const [i, workerCount] of workerCounts.entries()) {
    const workers = await Promise.all(Array.from({ length: workerCount }, () => startWorker(url)));
    const jobs = await QueuedJobs.connect({ url, version: VERSION });
    await measure(`Redis, workers: ${workerCount}`, jobs, 10 + i, [
      ...workers.map(({ pid }) => pid!),
      server,
    ]);
    await jobs.close();
    for (const worker of workers) worker.kill('SIGKILL');
  }
  return rows;
}

/** `traffic describe` and `simulate` in processes of their own, on CSV as Azure publishes it. */
async function* measureTraces(sizes: readonly number[]): AsyncGenerator<Row> {
  const folder = mkdtempSync(join(tmpdir(), 'servegym-traces-'));
  try {
    for (const requests of sizes) {
      const path = join(folder, 'trace.csv');
      await writeTrace(path, requests);
      const describe = run('traffic', 'describe', path, '--json');
      const simulate = run('simulate', path, '--profile', 'h100-80gb-llama-3-8b', '--json');
      yield {
        requests,
        'file, MB': statSync(path).size / 1e6,
        'describe: CPU, s': describe.cpuS,
        'peak, MB': describe.peakMb,
        'simulate: CPU, s': simulate.cpuS,
        'its peak, MB': simulate.peakMb,
      };
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Cost of a command: processor time in all, which others on the machine hardly change, and memory at its peak. */
function run(...args: string[]): { cpuS: number; peakMb: number } {
  const main = new URL('../../packages/servegym/src/main.ts', import.meta.url).pathname;
  // The process tells it when it ends.
  const say =
    "process.on('exit', () => process.stderr.write('used ' + JSON.stringify(process.resourceUsage()) + '\\n'))";
  const options = ['--import', `data:text/javascript,${encodeURIComponent(say)}`, main];
  const { stderr, status } = spawnSync(process.execPath, [...options, ...args], {
    stdio: ['ignore', 'ignore', 'pipe'],
    encoding: 'utf8',
  });
  if (status !== 0) throw new Error(`${args.join(' ')} ended with ${status}: ${stderr}`);
  const used = /^used (.*)$/m.exec(stderr)?.[1];
  if (used === undefined) throw new Error(`${args.join(' ')} did not say what it used: ${stderr}`);
  const { userCPUTime, systemCPUTime, maxRSS } = JSON.parse(used) as NodeJS.ResourceUsage;
  return {
    cpuS: (userCPUTime + systemCPUTime) / 1e6,
    peakMb: maxRSS / 1000,
  };
}

/** Requests of the lengths and the mean rate of a conversation trace, five a second. */
async function writeTrace(path: string, requests: number): Promise<void> {
  const out = createWriteStream(path);
  out.write('TIMESTAMP,ContextTokens,GeneratedTokens\n');
  let piece = '';
  for (let i = 0; i < requests; i += 1) {
    const at = new Date(1.7e12 + i * 200).toISOString().replace('T', ' ').replace('Z', '0000');
    piece += `${at},${1 + ((i * 7919) % 2300)},${1 + ((i * 104_729) % 420)}\n`;
    if (piece.length > 1e6) {
      if (!out.write(piece)) await once(out, 'drain');
      piece = '';
    }
  }
  out.end(piece);
  await once(out, 'finish');
}

async function startWorker(url: string): Promise<ChildProcess> {
  const script = new URL('../jobs/worker.ts', import.meta.url).pathname;
  const worker = spawn(process.execPath, [script, url], {
    env: { ...process.env, SCALING_VERSION: VERSION },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await once(worker.stdout!, 'data');
  return worker;
}
