import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { llmserve } from '@servegym/environments';
import { connect } from '@servegym/openenv/client';
import fc from 'fast-check';
import { startServe } from '../../maintenance/test-servers/servegym.ts';
import {
  MADE_UP_PATHS,
  madeUpBody,
  madeUpFrame,
} from '../../packages/openenv/src/fixtures/made-up-messages.ts';
import { openRawSocket } from '../../packages/openenv/src/fixtures/start-server.ts';
import { memoryMiB, startServer } from '../child.ts';
import { type BatchResult, runBatch } from '../concurrency/session-batch.ts';
import { benchmark } from '../harness.ts';
import { BareSocket, clientFrame } from '../openenv/bare-socket.ts';

/** How much of each part; `steps` are those between two kills. */
const SIZES = {
  kills: 40,
  players: 100,
  steps: 1000,
  sessions: 100_000,
  concurrent: 2048,
  rounds: 3,
  messages: 1_000_000,
};
type Values = typeof SIZES;

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

async function kills({ kills: count, players: many, steps }: Values, folder: string): Promise<string> {
  const start = () => startServe('--env', 'llmserve', '--store', join(folder, 'kills.db'));
  const players = Array.from({ length: many }, (_, seed) => new Player(seed));
  const acknowledged = () => players.reduce((sum, player) => sum + player.acknowledged, 0);
  let server = await start();
  let lost = 0;
  await Promise.all(players.map((player) => player.begin(server.url)));
  for (let kill = 0; kill < count; kill++) {
    const goal = acknowledged() + steps;
    const playing = Promise.all(players.map((player) => player.playOn()));
    while (acknowledged() < goal) await sleep(1);
    process.kill(server.pid, 'SIGKILL');
    await playing;
    server = await start();
    for (const missing of await Promise.all(players.map((player) => player.resume(server.url))))
      lost += missing;
  }
  process.kill(server.pid, 'SIGKILL');
  assert.equal(lost, 0, 'acknowledged steps were lost');
  return `${count} kills (SIGKILL) of \`serve\` with ${players.length} players of \`llmserve\` | ${lost} of ${acknowledged()} acknowledged steps lost`;
}

/** A server of the counter, which costs little, with its sessions in a file. */
function serveCounter(path: string) {
  const program = resolve(import.meta.dirname, '../../packages/openenv/src/fixtures/durable-server.ts');
  return startServer(process.execPath, program, path);
}

async function sessions({ sessions: total }: Values, folder: string): Promise<string> {
  const { url, pid, stop } = await serveCounter(join(folder, 'sessions.db'));
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
    memory.push(Math.round(memoryMiB(pid, 'VmRSS')));
  }
  const { active_sessions: left } = (await (await fetch(`${url}/health`)).json()) as {
    active_sessions: number;
  };
  const peak = Math.round(memoryMiB(pid, 'VmHWM'));
  await stop('SIGKILL');
  assert.equal(left, 0, 'sessions are left');
  const half = PARTS_OF_SESSIONS / 2;
  const growth = Math.max(...memory.slice(half)) - Math.max(...memory.slice(0, half));
  assert.ok(growth < MOST_GROWTH_MIB, `memory grew: ${memory.join(', ')} MiB`);
  return `${total} sessions opened, reset, stepped and closed, ${PLAYED_AT_ONCE} at once | ${memory.join(', ')} MiB after each tenth, ${peak} MiB at most; ${left} left`;
}

async function concurrent({ concurrent: sessions, rounds }: Values): Promise<string> {
  const server = await startServe('--env', 'benchmark', '--max-sessions', '16384');
  const plan = {
    socketUrls: [`${server.url.replace('http', 'ws')}/ws`],
    action: { wait_seconds: 1 },
    steps: 1,
    timeoutMs: 60_000,
    rampS: 0,
    headers: {},
  };
  const batches: BatchResult[] = [];
  for (let round = 0; round < rounds; round++) batches.push(await runBatch(plan, sessions));
  await server.stop();
  const rates = batches.map(({ succeeded }) => `${((100 * succeeded) / sessions).toFixed(2)} %`);
  const slowest = Math.max(...batches.map(({ total }) => total?.p99 ?? Number.POSITIVE_INFINITY));
  assert.ok(
    batches.every(({ succeeded }) => succeeded === sessions),
    `not all sessions succeeded: ${rates.join(', ')}`,
  );
  return `${sessions} concurrent sessions, ${rounds} times | ${rates.join(', ')} succeeded; p99 at most ${(slowest / 1000).toFixed(2)} s, of which 1 s is the step's own`;
}

async function messages({ messages: total }: Values, folder: string): Promise<string> {
  const { url, pid, stop } = await serveCounter(join(folder, 'messages.db'));
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
  const peak = Math.round(memoryMiB(pid, 'VmHWM'));
  assert.ok(peak > 0, 'the server crashed');
  await stop('SIGKILL');
  const told = [...counts].toSorted().map(([what, times]) => `${times} ${what}`);
  return `${total - requests} made-up frames and ${requests} made-up requests | no crash, no foreign answer in ${steps} steps of a bystander; ${told.join(', ')}; ${peak} MiB at most`;
}

const PARTS: Readonly<Record<string, (values: Values, folder: string) => Promise<string>>> = {
  kills,
  sessions,
  concurrent,
  messages,
};

export default benchmark({
  what: 'Hours of hard use in minutes: acknowledged steps lost over kills (SIGKILL) under load, memory over many sessions, success of sessions at once, and crashes or foreign answers over made-up frames and requests. Fails on any of them. Linux only.',
  options: { parts: 'kills,sessions,concurrent,messages', ...SIZES },
  async *run({ parts, ...values }) {
    const folder = mkdtempSync(join(tmpdir(), 'servegym-soak-'));
    try {
      for (const name of parts.split(',')) {
        const part = PARTS[name];
        if (part === undefined)
          throw new TypeError(`Expected --parts to name ${Object.keys(PARTS).join(', ')}, got \`${name}\`.`);
        const startedAt = performance.now();
        const [what, result] = (await part(values, folder)).split(' | ');
        yield { what, result, s: (performance.now() - startedAt) / 1000 };
      }
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  },
});
