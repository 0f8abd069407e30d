import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { llmserve } from '@servegym/environments';
import { WebSocket } from 'ws';
import { memoryMiB } from '../child.ts';
import { benchmark, quantile, type Row } from '../harness.ts';

/** Time between the steps of the other client, and between requests for /health, ms. */
const PACE_MS = 20;
/** Address of the other client: to the server, another client than the attacker. */
const OTHER_ADDRESS = '127.0.0.2';
/** Time that a server has to stop after SIGTERM, s. */
const STOP_S = 10;
const ACTION = llmserve.tasks.shipped.bursty_workload.defaultAction;

interface Target {
  /** The server's checkout. */
  readonly checkout: string;
  readonly url: string;
  readonly store: string;
  readonly signal: AbortSignal;
}

/** Attacks until the signal aborts; tells each answer. */
type Attack = (target: Target, answered: (answer: string) => void) => Promise<unknown>;

async function post(
  { url, signal }: Target,
  path: string,
  body: unknown,
  headers: Record<string, string> = {},
) {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  const init = {
    method: 'POST',
    body: text,
    signal,
    headers: { 'content-type': 'application/json', ...headers },
  };
  const response = await fetch(url + path, init);
  const answer = await response.text();
  const [, code = ''] = /"(?:code|type)":"([A-Za-z_]+)"/.exec(answer) ?? [];
  return { answer, text: response.ok ? `${response.status}` : `${response.status} ${code}` };
}

/** Posts the same over and over, on several connections. */
function flood(
  path: string,
  body: (round: number) => unknown,
  headers?: Record<string, string>,
  width = 4,
): Attack {
  const text = (round: number) => JSON.stringify(body(round));
  return (target, answered) =>
    Promise.all(
      Array.from({ length: width }, async (_, lane) => {
        for (let round = lane; !target.signal.aborted; round += width) {
          answered((await post(target, path, text(round), headers)).text);
        }
      }),
    );
}

function oracle(rate: number): Attack {
  return async (target, answered) => {
    const reset = await post(target, '/reset', { task_id: 'bursty_workload', seed: 5, rate_scale: rate });
    answered(`reset ${reset.text}`);
    if (!reset.text.startsWith('200')) return;
    const { session_id } = JSON.parse(reset.answer);
    answered(`step ${(await post(target, '/policies/oracle/step', { session_id })).text}`);
  };
}

/** Sends one message on a WebSocket, and waits for the answer or the end. */
function message(text: () => string): Attack {
  return async ({ url, signal }, answered) => {
    const socket = new WebSocket(`${url.replace('http', 'ws')}/ws`, { maxPayload: 2 ** 30 });
    socket.on('error', () => {});
    await once(socket, 'open', { signal });
    socket.send(text());
    const reply = once(socket, 'message', { signal }).then(([data]) => {
      const { type, data: body } = JSON.parse(String(data));
      return type === 'error' ? `${body.code} ${body.reason ?? ''}` : type;
    });
    const end = once(socket, 'close', { signal }).then(([code]) => `closed ${code}`);
    answered(await Promise.race([reply, end]));
  };
}

/** An object of a million keys, as JSON: 13 MB, made when it is sent. */
const millionKeys = () => `{${Array.from({ length: 1_000_000 }, (_, i) => `"key-${i}":1`).join(',')}}`;
const INLINE = {
  arrival_s: Array.from({ length: 19_000 }, (_, i) => i / 60),
  input_tokens: new Array(19_000).fill(100),
  output_tokens: new Array(19_000).fill(100),
};

const COMMAS = ','.repeat(1_000_000);
const plans = (trace: string) => flood('/plans', () => ({ trace, model: 'Llama-3-8B', gpus: ['L40S-48GB'] }));
/** A trace for /plans of just under a megabyte. */
const PLAN_ROWS = `arrival_s,input_tokens,output_tokens\n${Array.from({ length: 60_000 }, (_, i) => `${i},100,100`).join('\n')}`;
const SLOW_SENDERS = 10_000;

/** Holds connections open that send a header byte by byte. Some may be refused: the files of a process are limited. */
const slowSenders: Attack = async ({ url, signal }, answered) => {
  const { port, hostname } = new URL(url);
  const sockets = new Set<Socket>();
  for (let i = 0; i < SLOW_SENDERS && !signal.aborted; i++) {
    const socket = connect(Number(port), hostname, () => {
      sockets.add(socket);
      socket.write('POST /reset HTTP/1.1\r\nhost: localhost\r\nx-slow: ');
    });
    socket.on('error', ({ message }) => answered(message.split(' ').slice(0, 2).join(' ')));
    socket.on('close', () => sockets.delete(socket));
    if (i % 100 === 99) await sleep(10);
  }
  await sleep(1000);
  answered(`${sockets.size} open`);
  while (!signal.aborted) {
    for (const socket of sockets) socket.write('x');
    await sleep(1000, undefined, { signal }).catch(() => {});
  }
  for (const socket of sockets) socket.destroy();
};

const vector = (options: object) =>
  message(() => JSON.stringify({ type: 'vector_reset', data: { count: 1000, seed: 1, options } }));

const ATTACKS: Readonly<Record<string, Attack>> = {
  'no attack': ({ signal }) => once(signal, 'abort'),
  'oracle, rate_scale 20': oracle(20),
  'oracle, rate_scale 3.6': oracle(3.6),
  'resets, rate_scale 20': flood('/reset', (seed) => ({ task_id: 'bursty_workload', rate_scale: 20, seed })),
  'resets, rate_scale 3.6': flood('/reset', (seed) => ({
    task_id: 'bursty_workload',
    rate_scale: 3.6,
    seed,
  })),
  'vector_reset of 1,000, rate_scale 20': vector({ rate_scale: 20 }),
  'vector_reset of 1,000': vector({}),
  'vector_reset of 1,000, trace of 19,000 rows': vector({ trace: INLINE }),
  'resets, trace of 19,000 rows': flood('/reset', (seed) => ({ seed, trace: INLINE })),
  'gradings of unseen seeds': flood(
    '/grader',
    (round) => ({
      task_id: 'bursty_workload',
      seed: 7_000_000 + round,
      rate_scale: 3.6,
      episode_log: [{ action: ACTION }],
    }),
    {},
    8,
  ),
  'baselines of unseen seeds': flood('/baseline', (round) => ({ seed: 7_000_000 + round }), {}, 8),
  'plans of a million commas': plans(COMMAS),
  'plans of 60,000 rows': plans(PLAN_ROWS),
  'resets, column of half a million zeros': flood('/reset', () => ({
    trace: { ...INLINE, input_tokens: new Array(500_000).fill(0) },
  })),
  'resets, column of 19,000 zeros': flood('/reset', () => ({
    trace: { ...INLINE, input_tokens: new Array(19_000).fill(0) },
  })),
  '10,000 slow senders': slowSenders,
  'body of a million keys': async (target, answered) =>
    answered((await post(target, '/reset', `{"more":${millionKeys()}}`)).text),
  'body of 100,000 brackets': async (target, answered) =>
    answered((await post(target, '/reset', `{"more":${'['.repeat(100_000)}${']'.repeat(100_000)}}`)).text),
  'message of a million keys': message(() => `{"type":"reset","data":${millionKeys()}}`),
  'resets with user agents of 15 kB': flood('/reset', () => ({}), { 'user-agent': 'x'.repeat(15_000) }),
  'a second server on the same file': async (target, answered) => {
    await start(target.checkout, target.store, target.signal);
    answered('200');
    await once(target.signal, 'abort');
  },
};

/**
 * Runs in a server: the processor time of its event loop between two timers of 1 ms, which a busy machine does not change.
 * SIGUSR2 begins anew; at the end it prints the p99, ms.
 */
const LOOP_WATCH = `data:text/javascript,${encodeURIComponent(`
  import { isMainThread } from 'node:worker_threads';
  if (isMainThread) {
    let times = [];
    let last = process.threadCpuUsage();
    setInterval(() => {
      const { user, system } = process.threadCpuUsage(last);
      last = process.threadCpuUsage();
      times.push((user + system) / 1000);
    }, 1).unref();
    process.on('SIGUSR2', () => { times = []; });
    process.on('exit', () => {
      times.sort((a, b) => a - b);
      process.stdout.write('loop p99: ' + times[Math.floor(0.99 * times.length)]);
    });
  }`)}`;

/** Starts a server; one with a signal is killed when that aborts. */
async function start(
  checkout: string,
  store: string,
  signal?: AbortSignal,
): Promise<{ child: ChildProcess; url: string; said: () => string }> {
  const main = resolve(checkout, 'packages/servegym/src/main.ts');
  const args = [
    ...['--import', LOOP_WATCH, main, 'serve', '--env', 'llmserve', '--drain-timeout', '1'],
    ...['--host', '127.0.0.1', '--port', '0', '--store', store],
  ];
  const child = spawn(process.execPath, args, {
    stdio: ['ignore', 'pipe', 'ignore'],
    ...(signal && { signal, killSignal: 'SIGKILL' }),
  });
  child.on('error', () => {});
  let said = '';
  const url = await new Promise<string | undefined>((found) => {
    child.stdout!.on('data', (chunk) => {
      said += chunk;
      const [, url] = /ready: (\S+)\/web\//.exec(said) ?? [];
      if (url !== undefined) found(url);
    });
    child.once('exit', () => found(undefined));
  });
  if (url !== undefined) return { child, url, said: () => said };
  throw new Error(`The server did not start: ${said}`);
}

/** Steps an episode of its own, at a pace, until the signal aborts. Tells how long each step takes, also the unfinished one, ms. */
async function stepAlong(socket: WebSocket, signal: AbortSignal): Promise<number[]> {
  const times: number[] = [];
  const ask = async (text: object) => {
    socket.send(JSON.stringify(text));
    const [data] = await once(socket, 'message', { signal });
    return JSON.parse(String(data));
  };
  while (!signal.aborted) {
    await ask({ type: 'reset', data: { seed: 1 } }).catch(() => {});
    for (let done = false; !done && !signal.aborted; ) {
      await sleep(PACE_MS);
      const startedAt = performance.now();
      const reply = await ask({ type: 'step', data: ACTION }).catch(() => null);
      times.push(performance.now() - startedAt);
      done = reply?.data?.done !== false;
    }
  }
  socket.terminate();
  return times;
}

/** The longest time without an answer of /health, ms. */
async function watchHealth(url: string, signal: AbortSignal): Promise<number> {
  let longest = 0;
  let last = performance.now();
  while (!signal.aborted) {
    await fetch(`${url}/health`, { signal })
      .then((response) => response.text())
      .catch(() => {});
    const now = performance.now();
    longest = Math.max(longest, now - last);
    last = now;
    await sleep(PACE_MS);
  }
  return longest;
}

type Started = Awaited<ReturnType<typeof start>>;

/** What the attack of this name does in so many seconds to a server of a checkout. */
export async function measureAttack(name: string, seconds: number, checkout: string): Promise<Row> {
  const folder = mkdtempSync(join(tmpdir(), 'servegym-attack-'));
  const servers: Started[] = [];
  const begin = async (store: string) => {
    servers.push(await start(checkout, store));
    return servers.at(-1)!;
  };
  /** Attacks `target`, and tells how its clients and those of another server fare. */
  const attack = async (target: string, store: string, { child, url: observed }: Started) => {
    const over = new AbortController();
    const { signal } = over;
    const answers = new Map<string, number>();
    const others = new Worker(new URL(import.meta.url), { workerData: observed });
    await once(others, 'message');
    await sleep(500);
    child.kill('SIGUSR2');
    const attacking = ATTACKS[name]!({ checkout, url: target, store, signal }, (answer) => {
      answers.set(answer, (answers.get(answer) ?? 0) + 1);
    }).catch((error) => {
      if (!signal.aborted) answers.set(`${error.cause?.code ?? error.message}`, 1);
    });
    await sleep(seconds * 1000);
    others.postMessage('stop');
    const [{ times, gap }] = (await once(others, 'message')) as [Observed];
    const told = [...answers].map(([answer, count]) => (count > 1 ? `${answer} x ${count}` : answer));
    return {
      p99: quantile(times, 0.99),
      ...{ gap, told: told.join(', ') || 'none' },
      end: async () => {
        over.abort();
        await attacking;
      },
    };
  };
  try {
    const decoyStore = join(folder, 'decoy.sqlite');
    const quiet = await begin(join(folder, 'quiet.sqlite'));
    const decoy = await begin(decoyStore);
    const elsewhere = await attack(decoy.url, decoyStore, quiet);
    await elsewhere.end();
    for (const { child } of servers) child.kill('SIGKILL');

    const store = join(folder, 'sessions.sqlite');
    const attacked = await begin(store);
    const { child } = attacked;
    const here = await attack(attacked.url, store, attacked);
    const peak = memoryMiB(child.pid!, 'VmHWM');
    const disk = [store, `${store}-wal`].reduce(
      (sum, file) => sum + (statSync(file, { throwIfNoEntry: false })?.size ?? 0),
      0,
    );
    const stoppedIn = await stop(child);
    await here.end();
    return {
      attack: name,
      answer: here.told,
      'p99 of the other client, ms': here.p99,
      'the same, another server attacked': elsewhere.p99,
      'processor time of the loop between two timers p99, ms':
        /loop p99: (\S+)/.exec(attacked.said())?.[1] ?? '',
      'longest gap of /health, ms': here.gap,
      'peak memory, MiB': peak,
      'store, MiB': disk / 2 ** 20,
      'stops in, s': stoppedIn,
    };
  } finally {
    for (const { child } of servers) child.kill('SIGKILL');
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Seconds from SIGTERM to the end of a process. */
async function stop(child: ChildProcess): Promise<string> {
  const startedAt = performance.now();
  child.kill('SIGTERM');
  const ended = await Promise.race([once(child, 'exit'), sleep(STOP_S * 1000)]);
  return ended ? ((performance.now() - startedAt) / 1000).toFixed(1) : `over ${STOP_S}`;
}

interface Observed {
  readonly times: number[];
  readonly gap: number;
}

/** The other clients, on a thread of their own: what the attack costs its own process is not theirs. */
async function observe(url: string): Promise<void> {
  const over = new AbortController();
  const socket = new WebSocket(`${url.replace('http', 'ws')}/ws`, { localAddress: OTHER_ADDRESS });
  socket.on('error', () => {});
  await once(socket, 'open');
  parentPort!.postMessage('ready');
  const observed = Promise.all([stepAlong(socket, over.signal), watchHealth(url, over.signal)]);
  await once(parentPort!, 'message');
  over.abort();
  const [times, gap] = await observed;
  parentPort!.postMessage({ times, gap } satisfies Observed);
  parentPort!.close();
}

export default benchmark({
  what: 'What one hostile client can do to a server: each attack runs for some seconds against a `servegym serve` of its own, while another client steps over a WebSocket every 20 ms and a third asks for /health. Before that it runs against a second server, while the others use the first: what they feel then is only that the attack takes cores. `--attacks` names some, `;` between them; `--checkout FOLDER` serves another version. Everything stays on this machine. Linux only.',
  options: {
    checkout: join(import.meta.dirname, '../..'),
    seconds: 8,
    attacks: Object.keys(ATTACKS).join(';'),
  },
  async *run({ checkout, seconds, attacks }) {
    for (const name of attacks.split(';')) yield await measureAttack(name, seconds, checkout);
  },
});

if (!isMainThread && typeof workerData === 'string') await observe(workerData);
