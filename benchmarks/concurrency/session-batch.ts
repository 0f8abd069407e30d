import { on, once } from 'node:events';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { percentileOfSorted } from '@servegym/simulator/statistics';
import { WebSocket } from 'ws';

/** So many sessions are begun before the answers to others are read. */
const BEGUN_AT_ONCE = 32;

export interface BatchPlan extends SessionPlan {
  /** Sockets of the servers; sessions are dealt out in turn. */
  readonly socketUrls: readonly string[];
}

/** Percentiles of a time, ms; `null` when no session succeeded. */
interface Times {
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
}

/** Sessions that were open at the same time. */
export type BatchResult = Awaited<ReturnType<typeof runBatch>>;

/**
 * Plays sessions at once: each connects, resets and steps, and stays open until all have been answered or have failed,
 * so that the servers really hold them all, also while `held` runs. Times count from the start of the session they belong to.
 */
export async function runBatch(plan: BatchPlan, sessions: number, held?: () => Promise<void>) {
  const cpu = process.cpuUsage();
  const startedAt = performance.now();
  const plays: ReturnType<typeof playSession>[] = [];
  while (plays.length < sessions) {
    if (plays.length % BEGUN_AT_ONCE === 0) await nextTurn();
    plays.push(playSession(plan.socketUrls[plays.length % plan.socketUrls.length], plan));
  }
  const launchS = (performance.now() - startedAt) / 1000;
  const outcomes = await Promise.all(plays.map((play) => play.outcome));
  const wallS = (performance.now() - startedAt) / 1000;
  const { user, system } = process.cpuUsage(cpu);
  await held?.();
  await Promise.all(plays.map((play) => play.close()));

  const answered = outcomes.filter((outcome) => outcome.failure === null);
  return {
    sessions,
    succeeded: answered.length,
    /** From the first start to the last answer, s. */
    wallS,
    /** From the first start to the last, s. */
    launchS,
    /** Sessions that succeeded, a second of wall time. */
    requestsPerS: answered.length / wallS,
    stepsPerS: (answered.length * plan.steps) / wallS,
    /** From connecting to the last answer. */
    total: times(answered.map((outcome) => outcome.totalMs)),
    connect: times(answered.map((outcome) => outcome.connectMs)),
    reset: times(answered.map((outcome) => outcome.resetMs)),
    step: times(answered.map((outcome) => outcome.stepMs)),
    /** Failed sessions by reason. */
    failures: tally(outcomes.map((outcome) => outcome.failure)),
    /** Answered sessions by server and process, where observations name them. */
    answeredBy: tally(answered.map((outcome) => outcome.answeredBy)),
    /** Share of a core that this process took. Near 1, the load was at its own limit. */
    loadCpu: (user + system) / 1e6 / wallS,
  };
}

function times(values: readonly number[]): Times | null {
  if (values.length === 0) return null;
  const sorted = Float64Array.from(values).sort();
  return {
    p50: percentileOfSorted(sorted, 50),
    p99: percentileOfSorted(sorted, 99),
    max: sorted.at(-1)!,
  };
}

/** Number of occurrences of each text, the most frequent first. */
function tally(texts: readonly (string | null)[]): Record<string, number> {
  const counts = new Map<string, number>();
  for (const text of texts) if (text !== null) counts.set(text, (counts.get(text) ?? 0) + 1);
  return Object.fromEntries([...counts].sort(([, a], [, b]) => b - a));
}

/** Actions and limits of each session of a load. */
export interface SessionPlan {
  /** Sent with every step. */
  readonly action: Readonly<Record<string, unknown>>;
  /** Steps after the reset. */
  readonly steps: number;
  /** From connecting to the last answer, ms. A session that takes longer has failed. */
  readonly timeoutMs: number;
  readonly headers: Readonly<Record<string, string>>;
}

/** A server that does not answer a goodbye is left, ms. */
const CLOSE_TIMEOUT_MS = 5000;

/**
 * Plays a session at `socketUrl`, for instance `ws://localhost:8000/ws`: it connects, resets and steps, then stays open until
 * it is closed. `outcome` never rejects: a `failure` is `CAPACITY_REACHED`, `TIMEOUT in reset`, `ECONNREFUSED`, `HTTP 503` and the
 * like. `close` resolves when the socket is closed, by force if need be.
 */
function playSession(socketUrl: string, { action, steps, timeoutMs, headers }: SessionPlan) {
  const startedAt = performance.now();
  const socket = new WebSocket(socketUrl, { headers, perMessageDeflate: false });
  let phase = 'connect';
  const { promise: broken, reject: fail } = Promise.withResolvers<never>();
  const timer = setTimeout(() => fail(`TIMEOUT in ${phase}`), timeoutMs);
  socket.once('unexpected-response', (request, response) => {
    fail(`HTTP ${response.statusCode}`);
    response.resume();
    request.destroy();
  });
  socket.on('error', (error: NodeJS.ErrnoException) => fail(error.code ?? error.message));
  socket.on('close', (code) => fail(`closed with code ${code} in ${phase}`));
  // A server that refuses a session says so before it is asked.
  const replies = on(socket, 'message');
  const ask = async (message: object) => {
    socket.send(JSON.stringify(message));
    const { value = [] } = await Promise.race([replies.next(), broken]);
    return observationIn(String(value[0]));
  };
  const play = async () => {
    await Promise.race([once(socket, 'open'), broken]);
    const connectedAt = performance.now();
    phase = 'reset';
    let observation = await ask({ type: 'reset', data: {} });
    const resetAt = performance.now();
    phase = 'step';
    for (let step = 0; step < steps; step++) observation = await ask({ type: 'step', data: action });
    const now = performance.now();
    return {
      failure: null,
      ...{ connectMs: connectedAt - startedAt, resetMs: resetAt - connectedAt, totalMs: now - startedAt },
      /** Mean over the steps. */
      stepMs: (now - resetAt) / steps,
      answeredBy: answeredBy(observation),
    };
  };
  const outcome = play()
    .catch((failure: string) => ({ failure }))
    .finally(() => clearTimeout(timer));
  return { outcome, close: () => close(socket) };
}

/** @throws {string} why there is none */
function observationIn(text: string): Record<string, unknown> {
  let message: { type?: unknown; data?: { code?: unknown; observation?: unknown } } | null;
  try {
    message = JSON.parse(text);
  } catch {
    throw 'a reply that is not JSON';
  }
  if (message?.type === 'error') throw String(message.data?.code ?? 'an error without a code');
  const observation = message?.data?.observation;
  if (message?.type !== 'observation' || typeof observation !== 'object' || observation === null) {
    throw `a reply of type ${String(message?.type).slice(0, 40)}`;
  }
  return observation as Record<string, unknown>;
}

/** Server and process by an observation that tells them, as that of the `benchmark` environment does. */
function answeredBy({ host_url, pid }: Record<string, unknown>): string | null {
  if (typeof host_url !== 'string') return null;
  return typeof pid === 'number' ? `${host_url} pid ${pid}` : host_url;
}

async function close(socket: WebSocket): Promise<void> {
  if (socket.readyState === WebSocket.CLOSED) return;
  if (socket.readyState === WebSocket.OPEN) socket.send('{"type":"close"}');
  socket.close(1000);
  const timer = setTimeout(() => socket.terminate(), CLOSE_TIMEOUT_MS);
  socket.once('close', () => clearTimeout(timer));
  await new Promise((resolve) => socket.once('close', resolve));
}
