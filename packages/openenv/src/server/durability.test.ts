import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { DatabaseSync } from 'node:sqlite';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { connect, type EnvironmentClient } from '../client/connect.ts';
import {
  type CountAction,
  type CountObservation,
  type CountState,
  counterEnvironment,
} from '../fixtures/counter-environment.ts';
import { collectingLogger, getJson, openRawSocket, postJson, startServer } from '../fixtures/start-server.ts';
import { openSqliteStore } from '../sessions/sqlite-session-store.ts';
import { prometheusMetrics } from './prometheus-metrics.ts';

type CounterClient = EnvironmentClient<CountAction, CountObservation, CountState>;

const play = (amount: number): CountAction => ({ amount, note: '', mode: 'plain', weight: 1 });

function temporaryFile(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'sessions-'));
  t.after(() => rmSync(folder, { recursive: true }));
  return join(folder, 'sessions.db');
}

/** A server in a process of its own. */
async function spawnServer(t: TestContext, path: string): Promise<{ url: string; process: ChildProcess }> {
  const program = fileURLToPath(new URL('../fixtures/durable-server.ts', import.meta.url));
  const child = spawn(process.execPath, [program, path], { stdio: ['ignore', 'pipe', 'inherit'] });
  t.after(() => child.kill('SIGKILL'));
  const lines = createInterface({ input: child.stdout! });
  const [url] = await once(lines, 'line');
  return { url, process: child };
}

/** A client that plays one session for as long as it may, and remembers what the server has acknowledged. */
class Player {
  readonly seed: number;
  sessionId = '';
  acknowledged: number[] = [];
  /** The step that was sent and not yet answered. */
  inFlight: number | null = null;
  #client: CounterClient | undefined;

  constructor(seed: number) {
    this.seed = seed;
  }

  async begin(url: string): Promise<void> {
    this.#client = await connect<typeof counterEnvironment>(url);
    this.sessionId = this.#client.sessionId ?? '';
    await this.#client.reset({ seed: this.seed, episode_id: `episode-${this.seed}`, target: 1e9 });
  }

  /** Plays until the connection is lost. */
  async playOn(): Promise<void> {
    for (let turn = this.acknowledged.length; ; turn++) {
      this.inFlight = (this.seed * 7 + turn) % 11;
      try {
        const result = await this.#client!.step(play(this.inFlight));
        this.acknowledged.push(this.inFlight);
        assert.equal(result.observation.total, this.total);
      } catch (error) {
        if ((error as { code?: string }).code === 'CONNECTION_LOST') return;
        throw error;
      }
    }
  }

  /** Resumes on a server and checks that nothing that was acknowledged is lost. */
  async resume(url: string): Promise<void> {
    this.#client = await connect<typeof counterEnvironment>(url, { sessionId: this.sessionId });
    const state = await this.#client.state();
    if (state.step_count === this.acknowledged.length + 1) this.acknowledged.push(this.inFlight!);
    assert.deepEqual(state, {
      episode_id: `episode-${this.seed}`,
      step_count: this.acknowledged.length,
      total: this.total,
      target: 1e9,
      seed: this.seed,
      done: false,
    });
  }

  get total(): number {
    return this.acknowledged.reduce((sum, amount) => sum + amount, this.seed % 10);
  }

  async end(): Promise<void> {
    await this.#client?.close();
  }
}

/** `SERVEGYM_KILLS=40` for a longer proof. */
const KILLS = Number(process.env.SERVEGYM_KILLS ?? 3);

test('kill -9 in mid-load loses no acknowledged step: 300 sessions, three kills', async (t) => {
  const path = temporaryFile(t);
  const players = Array.from({ length: 300 }, (_, seed) => new Player(seed));
  let server = await spawnServer(t, path);
  await Promise.all(players.map((player) => player.begin(server.url)));
  for (let kill = 0; kill < KILLS; kill++) {
    const goal = players.reduce((sum, player) => sum + player.acknowledged.length, 0) + 3000;
    const lost = Promise.all(players.map((player) => player.playOn()));
    while (players.reduce((sum, player) => sum + player.acknowledged.length, 0) < goal) {
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    server.process.kill('SIGKILL');
    await lost;
    server = await spawnServer(t, path);
    await Promise.all(players.map((player) => player.resume(server.url)));
  }
  await Promise.all(players.map((player) => player.end()));
});

test('a socket that is lost leaves a session that can be resumed; one that says goodbye does not', async (t) => {
  const store = openSqliteStore(temporaryFile(t));
  const { url, server } = await startServer(t, counterEnvironment, { store });
  const lost = await openRawSocket(url);
  const gone = await openRawSocket(url);
  for (const socket of [lost, gone]) await socket.ask({ type: 'reset', data: { seed: 3 } });
  await lost.ask({ type: 'step', data: { amount: 4 } });
  const bothClosed = new Promise<void>((resolve) => {
    server.sessions.onClose(() => {
      if (server.sessions.size === 0) resolve();
    });
  });
  lost.socket.terminate();
  gone.send({ type: 'close' });
  await bothClosed;

  const resumed = await openRawSocket(url, `/ws?session_id=${lost.sessionId}`);
  assert.equal((await resumed.ask({ type: 'state' })).data.total, 7);
  await resumed.close();
  const refused = await openRawSocket(url, `/ws?session_id=${gone.sessionId}`);
  assert.match((await refused.next()).data.message, /is not kept here: it was closed/);
  await refused.close();
});

test('requests of one session may go to either of two replicas, in any order', async (t) => {
  const path = temporaryFile(t);
  const one = await startServer(t, counterEnvironment, { store: openSqliteStore(path) });
  const two = await startServer(t, counterEnvironment, { store: openSqliteStore(path) });
  const { body } = await postJson(`${one.url}/reset`, { seed: 0, target: 1000 });
  const session_id: string = body.session_id;
  for (let step = 0; step < 30; step++) {
    const { url } = [one, two, two, one, one][step % 5];
    const answer = await postJson(`${url}/step`, { session_id, action: { amount: 1 } });
    assert.equal(answer.body.observation?.total, step + 1, JSON.stringify(answer.body));
    const other = [two, one][step % 2];
    assert.equal((await getJson(`${other.url}/state?session_id=${session_id}`)).body.step_count, step + 1);
  }
  assert.equal((await postJson(`${two.url}/grader`, { session_id })).body.breakdown.total, 30);
  const restarted = await postJson(`${one.url}/reset`, { session_id, seed: 5 });
  assert.equal(restarted.body.session_id, session_id);
  assert.equal((await getJson(`${two.url}/state?session_id=${session_id}`)).body.seed, 5);
});

test('a socket whose session another replica has taken is told so and closed', async (t) => {
  const path = temporaryFile(t);
  const one = await startServer(t, counterEnvironment, { store: openSqliteStore(path) });
  const two = await startServer(t, counterEnvironment, { store: openSqliteStore(path) });
  const before = await openRawSocket(one.url);
  await before.ask({ type: 'reset', data: { seed: 1 } });
  const after = await openRawSocket(two.url, `/ws?session_id=${before.sessionId}`);
  await after.ask({ type: 'step', data: { amount: 1 } });
  const told = await before.ask({ type: 'step', data: { amount: 5 } });
  assert.equal(told.data.code, 'SESSION_ERROR');
  assert.match(told.data.message, /was resumed by another server/);
  assert.equal(await before.closed, 1000);
  assert.equal((await after.ask({ type: 'state' })).data.total, 2);
  await after.close();
});

test('a client takes its session back from a socket that hangs', async (t) => {
  const { url } = await startServer(t, counterEnvironment);
  const hanging = await openRawSocket(url);
  await hanging.ask({ type: 'reset', data: { seed: 1 } });
  hanging.socket.pause();
  const client = await connect<typeof counterEnvironment>(url, { sessionId: hanging.sessionId! });
  assert.equal((await client.step(play(3))).observation.total, 4);
  hanging.socket.resume();
  await hanging.closed;
  assert.equal((await client.step(play(3))).observation.total, 7);
  await client.close();
});

test('sessions that leave memory to make room come back when they are asked for', async (t) => {
  const store = openSqliteStore(temporaryFile(t));
  const { url, server } = await startServer(t, counterEnvironment, { store, maxSessions: 2 });
  const ids: string[] = [];
  for (let seed = 0; seed < 6; seed++) {
    const { body } = await postJson(`${url}/reset`, { seed });
    ids.push(body.session_id);
    await postJson(`${url}/step`, { session_id: body.session_id, action: { amount: 1 } });
  }
  assert.equal(server.sessions.size, 2);
  const totals = [];
  for (const id of ids) totals.push((await getJson(`${url}/state?session_id=${id}`)).body.total);
  assert.deepEqual(totals, [1, 2, 3, 4, 5, 6]);
  assert.equal(server.sessions.size, 2);
  assert.equal((await getJson(`${url}/state`)).body.total, 6, "the caller's latest is remembered too");
});

test('a session of another version is not replayed, but can be reset', async (t) => {
  const path = temporaryFile(t);
  const old = await startServer(t, counterEnvironment, { store: openSqliteStore(path) });
  const { body } = await postJson(`${old.url}/reset`, { seed: 1 });
  const session_id: string = body.session_id;
  const next = { ...counterEnvironment, version: '2' };
  const { url } = await startServer(t, next, { store: openSqliteStore(path) });
  const refused = await getJson(`${url}/state?session_id=${session_id}`);
  assert.deepEqual([refused.status, refused.body.code], [409, 'REPLAY_FAILED']);
  assert.match(refused.body.detail, /was played on counter 1; this server has counter 2/);
  assert.equal((await postJson(`${url}/reset`, { session_id, seed: 2 })).status, 200);
  assert.equal((await getJson(`${url}/state?session_id=${session_id}`)).body.total, 2);
});

test('a step that cannot be saved is not acknowledged, and the session goes on from the last that was', async (t) => {
  const store = openSqliteStore(temporaryFile(t), { maxBytes: 64 * 1024 });
  const { url } = await startServer(t, counterEnvironment, { store });
  const session = await openRawSocket(url);
  await session.ask({ type: 'reset', data: { seed: 0, target: 1e9 } });
  let acknowledged = 0;
  let reply = await session.ask({ type: 'step', data: { amount: 1 } });
  while (reply.type === 'observation') {
    acknowledged++;
    reply = await session.ask({ type: 'step', data: { amount: 1, note: 'x'.repeat(40) } });
  }
  assert.equal(reply.data.code, 'SESSION_ERROR');
  assert.match(reply.data.message, /the disk is full/);
  assert.equal(await session.closed, 1000);
  const state = await getJson(`${url}/state?session_id=${session.sessionId}`);
  assert.equal(state.body.step_count, acknowledged);
  const other = await postJson(`${url}/reset`, { episode_id: 'x'.repeat(200) });
  if (other.status !== 200) assert.deepEqual([other.status, other.body.code], [503, 'STORE_ERROR']);
});

test('/health and /metrics tell that sessions cannot be written, and that they can again', async (t) => {
  const path = temporaryFile(t);
  const { logger, entries } = collectingLogger();
  const store = openSqliteStore(path, { lockTimeoutMs: 50, logger });
  const { url } = await startServer(t, counterEnvironment, { store, metrics: prometheusMetrics() });
  const { body } = await postJson(`${url}/reset`, { seed: 0 });
  const { session_id } = body;
  const health = async () => (await getJson(`${url}/health`)).body;
  const metrics = async () => (await fetch(`${url}/metrics`)).text();
  assert.deepEqual([(await health()).status, 'reason' in (await health())], ['healthy', false]);
  const other = new DatabaseSync(path);
  t.after(() => other.close());
  other.exec('BEGIN IMMEDIATE');
  const step = await postJson(`${url}/step`, { session_id, action: { amount: 1 } });
  assert.deepEqual([step.status, step.body.code], [503, 'STORE_ERROR']);
  assert.equal((await health()).status, 'degraded');
  assert.match((await health()).reason, /another process holds the database locked/);
  assert.match(await metrics(), /openenv_store_degraded 1\n/);
  assert.match(await metrics(), /openenv_store_failed_writes_total 1\n/);
  assert.deepEqual(
    entries.filter(({ level }) => level === 'error').map(({ message }) => message),
    ['sessions cannot be written'],
  );
  other.exec('ROLLBACK');
  const again = await postJson(`${url}/step`, { session_id, action: { amount: 1 } });
  assert.equal(again.body.observation.total, 1);
  assert.equal((await health()).status, 'healthy');
});

test('an environment that says it cannot be replayed is served without being kept', async (t) => {
  const store = openSqliteStore(temporaryFile(t));
  const unrepeatable = { ...counterEnvironment, replayable: false };
  const { url, server } = await startServer(t, unrepeatable, { store });
  const { body } = await postJson(`${url}/reset`, { seed: 0 });
  await postJson(`${url}/step`, { action: { amount: 1 } });
  const session = server.sessions.find(body.session_id);
  assert.equal(session?.stepCount, 1);
  assert.deepEqual(session?.record?.actions, []);
  assert.equal(await store.take(body.session_id), undefined);
});
