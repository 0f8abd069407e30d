import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { socketUrl } from '@servegym/openenv/client';
import { startServe } from '../../maintenance/test-servers/servegym.ts';
import { type BatchResult, runBatch, type SessionPlan } from '../concurrency/session-batch.ts';
import { benchmark, type Row, text } from '../harness.ts';

/** Most sessions at once that one process can be asked for. */
const MOST_SESSIONS = 16_384;
/** Files that a process has open beside its sockets, generously. */
const OTHER_FILES = 64;
/** A deployment holds as many sessions as the largest batch of which so many succeed. */
const HOLDS_FROM = 0.95;
/** Above this the load may have been what was measured. */
const BUSY_LOAD = 0.9;
/** Played twice on a server of its own before the clock starts, so that the code of both sides is compiled. */
const WARM_UP_SESSIONS = 1024;
/** After so long the heap has been collected and nothing is under way any more, s. */
const SETTLING_S = 5;

export default benchmark({
  what: 'How many sessions at once OpenEnv servers hold, and how late they answer. A session connects, resets and steps; those of a batch stay open until all have been answered. On the servers of `--url A,B`, which share the sessions in turn, or on a `servegym serve --env benchmark` of its own. `--requests 1,8,64` or `1..1024`. Its steps are those of the `benchmark` environment, with a `--wait` in seconds, or `--action JSON`; `--idle` sessions of which the memory is told. Linux only.',
  options: {
    ...{ url: text, requests: '1..1024', wait: 1, action: text, steps: 1 },
    ...{ timeout: 60, token: text, rounds: 1, idle: 0 },
  },
  async *run({ url, requests, wait, action, steps, timeout, token, rounds, idle }) {
    const grid = requestGrid(requests);
    requireOpenFiles(Math.max(...grid, idle));
    const own =
      url === undefined ? await startServe('--env', 'benchmark', '--max-sessions', '100000') : undefined;
    const urls = url?.split(',') ?? [own!.url];
    const headers: Record<string, string> = token ? { authorization: `Bearer ${token}` } : {};
    const sent = action === undefined ? { wait_seconds: wait } : JSON.parse(action);
    const socketUrls = urls.map((each) => socketUrl(new URL(each), 'ws').href);
    const plan = { socketUrls, action: sent, steps, timeoutMs: 1000 * timeout, headers };
    try {
      if (own) for (let time = 0; time < 2; time++) await runBatch({ ...plan, steps: 1 }, WARM_UP_SESSIONS);
      const batches: BatchResult[] = [];
      for (const sessions of grid)
        for (let round = 0; round < rounds; round++) {
          batches.push(await runBatch(plan, sessions));
          yield rowOf(batches.at(-1)!);
        }
      yield* notes(batches);
    } finally {
      await own?.stop();
    }
    if (idle > 0) yield await measureIdle(plan, idle);
  },
});

/** Figures of a batch, times in s. `null` where no session succeeded. */
function rowOf(batch: BatchResult): Row {
  const { sessions, succeeded, total, connect, reset, step } = batch;
  const seconds = (ms: number | undefined) => (ms === undefined ? null : ms / 1000);
  return {
    sessions,
    'success, %': (100 * succeeded) / sessions,
    'p50, s': seconds(total?.p50),
    'p99, s': seconds(total?.p99),
    'connect p99, s': seconds(connect?.p99),
    'reset p99, s': seconds(reset?.p99),
    'step p99, s': seconds(step?.p99),
    'launch, s': batch.launchS,
    'requests/s': batch.requestsPerS,
    'steps/s': batch.stepsPerS,
    load_cpu: batch.loadCpu,
    failures: Object.entries(batch.failures)
      .map(([reason, times]) => `${times} ${reason}`)
      .join(', '),
    processes: Object.keys(batch.answeredBy).length,
  };
}

function* notes(batches: readonly BatchResult[]) {
  const held = batches.filter(({ succeeded, sessions }) => succeeded >= HOLDS_FROM * sessions);
  const most = held.length === 0 ? 'none' : Math.max(...held.map(({ sessions }) => sessions));
  yield `largest batch with at least 95 % success: ${most}`;
  for (const { sessions, loadCpu } of batches)
    if (loadCpu > BUSY_LOAD)
      yield `${sessions} sessions: the load took ${(100 * loadCpu).toFixed(0)} % of a core, which may be what was measured`;
}

/** Resident memory of a process, MiB. Linux only. */
function memoryMiB(pid: number): number {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;
}

/** Memory of sessions that do nothing any more, on a server of their own. */
async function measureIdle(plan: SessionPlan, sessions: number): Promise<Row> {
  const { url, pid, stop } = await startServe('--env', 'benchmark', '--max-sessions', '100000');
  const before = memoryMiB(pid);
  let resident = Number.NaN;
  const socketUrls = [socketUrl(new URL(url), 'ws').href];
  await runBatch({ ...plan, socketUrls, action: { wait_seconds: 0 } }, sessions, async () => {
    await sleep(SETTLING_S * 1000);
    resident = memoryMiB(pid);
  });
  await stop();
  return {
    'idle sessions': sessions,
    'resident, MiB': resident,
    'KiB a session': ((resident - before) * 1024) / sessions,
  };
}

/** Numbers of sessions: `1,8,64`, and `1..1024` for 1, 2, 4 and so on up to 1024, which is always in it. */
export function requestGrid(given: string): number[] {
  const sessions = (part: string) => {
    const count = /^\d+$/.test(part) ? Number(part) : Number.NaN;
    if (count >= 1 && count <= MOST_SESSIONS) return count;
    throw new Error(
      `expected numbers of sessions from 1 to ${MOST_SESSIONS}, as \`1,8,64\` or \`1..1024\`, got \`${given}\``,
    );
  };
  return given.split(',').flatMap((part) => {
    const [low, high] = part.trim().split('..');
    if (high === undefined) return [sessions(low)];
    const [first, last] = [sessions(low), sessions(high)];
    if (first > last) throw new Error(`expected a range to go upwards, got \`${given}\``);
    const grid: number[] = [];
    for (let count = first; count < last; count *= 2) grid.push(count);
    return [...grid, last];
  });
}

/** Most files that this process may have open; `null` where the system does not tell. */
export function openFileLimit(): number | null {
  const limits = readFileSync('/proc/self/limits', 'utf8');
  const soft = Number(/^Max open files\s+(\S+)/m.exec(limits)?.[1]);
  return Number.isNaN(soft) ? null : soft;
}

/** @throws Error when so many sockets cannot be open at once. */
export function requireOpenFiles(sockets: number, limit = openFileLimit()): void {
  const needed = sockets + OTHER_FILES;
  if (limit === null || limit >= needed) return;
  throw new Error(
    `${sockets} sessions need ${needed} open files, but this process may have ${limit}. Raise the limit with \`ulimit -n ${needed}\`, or ask for at most ${Math.max(1, limit - OTHER_FILES)} sessions.`,
  );
}
