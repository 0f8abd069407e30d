// Sessions of the benchmark environment that one server process holds at once: how many succeed, how late they are
// answered, and what 10,000 idle ones cost in memory. The load shares the machine with the server.
import { execFile } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs, promisify } from 'node:util';
import { BareSocket, clientFrame } from './openenv/bare-socket.ts';
import { serve } from './serve.ts';

const { values } = parseArgs({
  options: {
    sessions: { type: 'string', default: '2048,10000' },
    wait: { type: 'string', default: '1' },
    ramp: { type: 'string', default: '0' },
    rounds: { type: 'string', default: '3' },
    idle: { type: 'string', default: '10000' },
    json: { type: 'boolean', default: false },
  },
});

const MAX_SESSIONS = 100_000;
/** Played twice before the clock starts, so that the code of both sides is compiled. */
const WARM_UP_SESSIONS = 1024;
const OPENING_AT_ONCE = 64;
/** After so long the heap has been collected and nothing is under way any more, s. */
const SETTLING_S = 5;
const RESET = clientFrame('{"type":"reset","data":{}}');

const main = fileURLToPath(new URL('../packages/servegym/src/main.ts', import.meta.url));
const run = promisify(execFile);

interface Batch {
  readonly sessions: number;
  readonly success_rate: number;
  readonly total_ms: { readonly p50: number; readonly p99: number } | null;
  readonly launch_s: number;
  readonly requests_per_s: number;
  readonly load_cpu: number;
  readonly failures: Readonly<Record<string, number>>;
}

async function measureBatches(url: string): Promise<Batch[]> {
  const measured = Array.from({ length: Number(values.rounds) }, () => values.sessions);
  const grid = [WARM_UP_SESSIONS, WARM_UP_SESSIONS, ...measured].join(',');
  const load = ['--url', url, '--requests', grid, '--wait', values.wait, '--ramp', values.ramp, '--json'];
  const { stdout } = await run(process.execPath, [main, 'bench', 'server', ...load], {
    maxBuffer: 2 ** 26,
  });
  const { batches } = JSON.parse(stdout) as { batches: Batch[] };
  return batches.slice(2).toSorted((a, b) => a.sessions - b.sessions);
}

async function measureIdle(url: string, pid: number) {
  const sessions = Number(values.idle);
  const before = await residentMiB(pid);
  const sockets: BareSocket[] = [];
  const startedAt = performance.now();
  while (sockets.length < sessions) {
    const count = Math.min(OPENING_AT_ONCE, sessions - sockets.length);
    const opened = await Promise.all(Array.from({ length: count }, () => BareSocket.open(url)));
    await Promise.all(opened.map((socket) => socket.ask(RESET)));
    sockets.push(...opened);
  }
  const openS = (performance.now() - startedAt) / 1000;
  await sleep(SETTLING_S * 1000);
  const resident = await residentMiB(pid);
  await Promise.all(sockets.map((socket) => socket.close()));
  return {
    idle_sessions: sessions,
    open_s: Number(openS.toFixed(2)),
    resident_mib: Math.round(resident),
    kib_a_session: Number((((resident - before) * 1024) / sessions).toFixed(1)),
  };
}

async function residentMiB(pid: number): Promise<number> {
  const { stdout } = await run('ps', ['-o', 'rss=', '-p', String(pid)]);
  return Number(stdout) / 1024;
}

const idleServer = await serve('--env', 'benchmark', '--max-sessions', String(MAX_SESSIONS));
const idle = await measureIdle(idleServer.url, idleServer.pid);
await idleServer.stop();

const server = await serve('--env', 'benchmark', '--max-sessions', String(MAX_SESSIONS));
const batches = await measureBatches(server.url);
await server.stop();

if (values.json) console.log(JSON.stringify({ batches, idle }));
else {
  console.table(
    batches.map(({ sessions, success_rate, total_ms, launch_s, requests_per_s, load_cpu, failures }) => ({
      sessions,
      'success, %': Number((100 * success_rate).toFixed(2)),
      'p50, s': total_ms && Number((total_ms.p50 / 1000).toFixed(3)),
      'p99, s': total_ms && Number((total_ms.p99 / 1000).toFixed(3)),
      'launch, s': Number(launch_s.toFixed(2)),
      'requests/s': Math.round(requests_per_s),
      load_cpu: Number(load_cpu.toFixed(2)),
      failures: Object.entries(failures)
        .map(([reason, times]) => `${times} ${reason}`)
        .join(', '),
    })),
  );
  console.table([idle]);
}
