// Hours of hard use in minutes: servers that are killed under load, sessions that come and go, many at once, and made-up
// messages. Each part says what it counted, and fails when something was lost, grew, crashed or was answered wrongly.
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs, promisify } from 'node:util';
import { llmserve } from '@servegym/environments';
import { connect } from '@servegym/openenv/client';
import fc from 'fast-check';
import { MADE_UP_PATHS, madeUpBody, madeUpFrame } from '../packages/openenv/src/fixtures/made-up-messages.ts';
import { openRawSocket } from '../packages/openenv/src/fixtures/raw-socket.ts';
import { BareSocket, clientFrame } from './openenv/bare-socket.ts';
import { type MeasuredServer, serve } from './serve.ts';

const { values } = parseArgs({
  options: {
    parts: { type: 'string', default: 'kills,sessions,concurrent,messages' },
    kills: { type: 'string', default: '40' },
    players: { type: 'string', default: '100' },
    steps: { type: 'string', default: '1000' },
    sessions: { type: 'string', default: '100000' },
    concurrent: { type: 'string', default: '2048' },
    rounds: { type: 'string', default: '3' },
    messages: { type: 'string', default: '1000000' },
  },
});

const TASK = llmserve.tasks.shipped.static_workload;
const PLAYED_AT_ONCE = 32;
/** A client waits for its session this long, ms. */
const PATIENCE_MS = 120_000;
/** The memory is looked at after each of so many parts. */
const PARTS_OF_SESSIONS = 10;
/** In the second half of the sessions a server may have this much more memory than in the first, MiB. */
const MOST_GROWTH_MIB = 64;
/** Messages that each socket sends before it waits for their answers. */
const SENT_AHEAD = 24;
const SOCKETS = 8;
/** Share of the messages that are HTTP requests. */
const REQUEST_SHARE = 0.1;
/** Each made-up message is sent this often, at other times and on other sockets. */
const REUSE = 20;
const REPLIES = new Set(['observation', 'state', 'mcp', 'vector', 'error']);
const SEED = 14;

const folder = mkdtempSync(join(tmpdir(), 'servegym-soak-'));
const main = fileURLToPath(new URL('../packages/servegym/src/main.ts', import.meta.url));

function connectTo(url: string, sessionId?: string) {
  // A server that was just killed replays all sessions at once.
  return connect<typeof llmserve>(url, {
    connectTimeoutMs: PATIENCE_MS,
    ...(sessionId && { sessionId }),
  });
}

/** Plays episodes in one session, and knows what the server has acknowledged. */
class Player {
  readonly #seed: number;
  #client: Awaited<ReturnType<typeof connectTo>> | undefined;
  #sessionId = '';
  #episode = 0;
  #steps = 0;
  #return = 0;
  #underWay: 'reset' | 'step' | null = null;
  acknowledged = 0;

  constructor(seed: number) {
    this.#seed = seed;
  }

  async begin(url: string): Promise<void> {
    this.#client = await connectTo(url);
    this.#sessionId = this.#client.sessionId!;
    await this.#reset();
  }

  /** Plays until the connection is lost. */
  async playOn(): Promise<void> {
    try {
      for (;;) {
        if (this.#steps === TASK.windows) await this.#reset();
        this.#underWay = 'step';
        const { reward } = await this.#client!.step({ ...TASK.defaultAction });
        this.#steps++;
        this.#return += reward!;
        this.acknowledged++;
        this.#underWay = null;
      }
    } catch (error) {
      if ((error as { code?: string }).code !== 'CONNECTION_LOST') throw error;
    }
  }

  /** Goes on with the session, and checks that it is where it was. Returns steps that are lost. */
  async resume(url: string): Promise<number> {
    this.#client = await connectTo(url, this.#sessionId);
    const { episode_id, step_count, cumulative_reward } = await this.#client.state();
    if (this.#underWay === 'reset' && episode_id !== this.#name) {
      this.#episode++;
      this.#steps = 0;
      this.#return = 0;
    }
    assert.equal(episode_id, this.#name, 'another episode came back');
    const isAhead = this.#underWay === 'step' && step_count === this.#steps + 1;
    if (step_count < this.#steps) return this.#steps - step_count;
    assert.equal(step_count, this.#steps + Number(isAhead), 'steps that nobody played came back');
    if (!isAhead) assert.equal(cumulative_reward, this.#return, 'other steps came back');
    this.#steps = step_count;
    this.#return = cumulative_reward!;
    this.#underWay = null;
    return 0;
  }

  async #reset(): Promise<void> {
    this.#underWay = 'reset';
    const episode_id = this.#nameOf(this.#episode + 1);
    await this.#client!.reset({ task_id: TASK.id, seed: this.#seed, episode_id });
    this.#episode++;
    this.#steps = 0;
    this.#return = 0;
    this.#underWay = null;
  }

  get #name(): string {
    return this.#nameOf(this.#episode);
  }

  #nameOf(episode: number): string {
    return `player ${this.#seed}, episode ${episode}`;
  }
}

async function kills(): Promise<string> {
  const start = () => serve('--env', 'llmserve', '--store', join(folder, 'kills.db'));
  const players = Array.from({ length: Number(values.players) }, (_, seed) => new Player(seed));
  const acknowledged = () => players.reduce((sum, player) => sum + player.acknowledged, 0);
  let server: MeasuredServer = await start();
  let lost = 0;
  await Promise.all(players.map((player) => player.begin(server.url)));
  for (let kill = 0; kill < Number(values.kills); kill++) {
    const goal = acknowledged() + Number(values.steps);
    const playing = Promise.all(players.map((player) => player.playOn()));
    while (acknowledged() < goal) await sleep(1);
    process.kill(server.pid, 'SIGKILL');
    await playing;
    server = await start();
    for (const steps of await Promise.all(players.map((player) => player.resume(server.url)))) lost += steps;
  }
  process.kill(server.pid, 'SIGKILL');
  assert.equal(lost, 0, 'acknowledged steps were lost');
  return `${values.kills} kills (SIGKILL) of \`serve\` with ${players.length} players of \`llmserve\` | ${lost} of ${acknowledged()} acknowledged steps lost`;
}

/** A server of the counter, which costs little, with its sessions in a file. */
async function serveCounter(name: string) {
  const program = fileURLToPath(
    new URL('../packages/openenv/src/fixtures/durable-server.ts', import.meta.url),
  );
  const child = spawn(process.execPath, [program, join(folder, name)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const end = () => child.kill('SIGKILL');
  process.once('exit', end);
  child.once('exit', () => process.off('exit', end));
  const [url] = await once(createInterface({ input: child.stdout }), 'line');
  const memoryMiB = (what: 'VmRSS' | 'VmHWM') => {
    const [, kiB] = new RegExp(`${what}:\\s+(\\d+)`).exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))!;
    return Math.round(Number(kiB) / 1024);
  };
  return { url: url as string, child, memoryMiB };
}

async function sessions(): Promise<string> {
  const { url, child, memoryMiB } = await serveCounter('sessions.db');
  const total = Number(values.sessions);
  const reset = clientFrame('{"type":"reset","data":{"seed":1}}');
  const step = clientFrame('{"type":"step","data":{"amount":1}}');
  const farewell = clientFrame('{"type":"close"}');
  let opened = 0;
  const openUntil = (count: number) =>
    Promise.all(
      Array.from({ length: PLAYED_AT_ONCE }, async () => {
        while (opened < count) {
          opened++;
          const socket = await BareSocket.open(url);
          await socket.ask(reset);
          assert.match(await socket.ask(step), /"total":2/);
          socket.send(farewell);
          await socket.close();
        }
      }),
    );
  const memory: number[] = [];
  for (let part = 1; part <= PARTS_OF_SESSIONS; part++) {
    await openUntil((part * total) / PARTS_OF_SESSIONS);
    memory.push(memoryMiB('VmRSS'));
  }
  const { active_sessions: left } = (await (await fetch(`${url}/health`)).json()) as {
    active_sessions: number;
  };
  const peak = memoryMiB('VmHWM');
  child.kill('SIGKILL');
  assert.equal(left, 0, 'sessions are left');
  const half = PARTS_OF_SESSIONS / 2;
  const growth = Math.max(...memory.slice(half)) - Math.max(...memory.slice(0, half));
  assert.ok(growth < MOST_GROWTH_MIB, `memory grew: ${memory.join(', ')} MiB`);
  return `${total} sessions opened, reset, stepped and closed, ${PLAYED_AT_ONCE} at once | ${memory.join(', ')} MiB after each tenth, ${peak} MiB at most; ${left} left`;
}

async function concurrent(): Promise<string> {
  const server = await serve('--env', 'benchmark', '--max-sessions', '16384');
  const grid = Array.from({ length: Number(values.rounds) }, () => values.concurrent).join(',');
  const load = ['bench', 'server', '--url', server.url, '--requests', grid, '--wait', '1', '--json'];
  const { stdout } = await promisify(execFile)(process.execPath, [main, ...load], { maxBuffer: 2 ** 26 });
  await server.stop();
  const { batches } = JSON.parse(stdout) as {
    batches: { success_rate: number; total_ms: { p99: number } | null }[];
  };
  const rates = batches.map(({ success_rate }) => `${(100 * success_rate).toFixed(2)} %`);
  const slowest = Math.max(...batches.map(({ total_ms }) => total_ms?.p99 ?? Number.POSITIVE_INFINITY));
  assert.ok(
    batches.every(({ success_rate }) => success_rate === 1),
    `not all sessions succeeded: ${rates.join(', ')}`,
  );
  return `${values.concurrent} concurrent sessions, ${values.rounds} times | ${rates.join(', ')} succeeded; p99 at most ${(slowest / 1000).toFixed(2)} s, of which 1 s is the step's own`;
}

async function messages(): Promise<string> {
  const { url, child, memoryMiB } = await serveCounter('messages.db');
  let crashed = false;
  child.once('exit', () => {
    crashed = true;
  });
  const total = Number(values.messages);
  const requests = Math.round(total * REQUEST_SHARE);
  const bystander = await openRawSocket(url);
  await bystander.ask({ type: 'reset', data: { seed: 3, target: 1e9 } });
  let steps = 0;
  let isOver = false;
  const watching = (async () => {
    while (!isOver) {
      await bystander.ask({ type: 'step', data: { amount: 1 } });
      steps++;
      const { data } = await bystander.ask({ type: 'state' });
      assert.deepEqual([data.step_count, data.total, data.seed], [steps, 3 + steps, 3]);
    }
  })();
  const counts = new Map<string, number>();
  let answered = 0;
  const count = (what: string) => {
    counts.set(what, (counts.get(what) ?? 0) + 1);
    if (++answered % 100_000 === 0) console.error(`${answered} messages answered`);
  };
  const frames = fc.sample(madeUpFrame, { numRuns: Math.ceil((total - requests) / REUSE), seed: SEED });
  let sent = 0;
  const send = async (lane: number) => {
    const socket = await openRawSocket(url);
    for (let round = 0; sent < total - requests; round++) {
      const first = sent;
      const batch = Math.min(SENT_AHEAD, total - requests - sent);
      sent += batch;
      for (let i = first; i < first + batch; i++) socket.send(frames[(i * SOCKETS + lane) % frames.length]);
      const id = `${lane}-${round}`;
      socket.send({ type: 'mcp', data: { jsonrpc: '2.0', method: 'tools/list', id } });
      for (let i = 0; i < batch; i++) {
        const { type, data } = await socket.next();
        assert.ok(REPLIES.has(type), type);
        assert.ok(type !== 'error' || typeof data.code === 'string');
        count(type);
      }
      assert.equal((await socket.next()).data.id, id, 'an answer of another message');
    }
    await socket.close();
  };
  const bodies = fc.sample(madeUpBody, { numRuns: Math.ceil(requests / REUSE), seed: SEED });
  let posted = 0;
  const post = async () => {
    while (posted < requests) {
      const i = posted++;
      const response = await fetch(url + MADE_UP_PATHS[i % MADE_UP_PATHS.length], {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: bodies[i % bodies.length],
      });
      const answer = (await response.json()) as { detail?: unknown };
      assert.notEqual(response.status, 500, bodies[i % bodies.length]);
      assert.ok(response.status < 400 || answer.detail !== undefined);
      count(`HTTP ${response.status}`);
    }
  };
  await Promise.all([
    ...Array.from({ length: SOCKETS }, (_, lane) => send(lane)),
    post(),
    post(),
    post(),
    post(),
  ]);
  isOver = true;
  await watching;
  await bystander.close();
  const peak = memoryMiB('VmHWM');
  assert.ok(!crashed);
  child.kill('SIGKILL');
  const told = [...counts].toSorted().map(([what, times]) => `${times} ${what}`);
  return `${total - requests} made-up frames and ${requests} made-up requests | no crash, no foreign answer in ${steps} steps of a bystander; ${told.join(', ')}; ${peak} MiB at most`;
}

const PARTS: Readonly<Record<string, () => Promise<string>>> = { kills, sessions, concurrent, messages };

try {
  console.log('| what | result | s |\n|---|---|---|');
  for (const name of values.parts.split(',')) {
    const part = PARTS[name];
    if (part === undefined) {
      throw new TypeError(`Expected --parts to name ${Object.keys(PARTS).join(', ')}, got \`${name}\`.`);
    }
    const startedAt = performance.now();
    const result = await part();
    console.log(`| ${result} | ${Math.round((performance.now() - startedAt) / 1000)} |`);
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
