import { WebSocket } from 'ws';

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

/** Outcome of a session. Times in ms. */
type SessionOutcome =
  | {
      readonly failure: null;
      readonly connectMs: number;
      readonly resetMs: number;
      /** Mean over the steps. */
      readonly stepMs: number;
      /** From connecting to the last answer. */
      readonly totalMs: number;
      /** Server and process by the last observation, when it tells them, as the `benchmark` environment does. */
      readonly answeredBy: string | null;
    }
  | {
      /** For instance `CAPACITY_REACHED`, `TIMEOUT in reset`, `ECONNREFUSED`, `HTTP 503`. */
      readonly failure: string;
    };

/** A session that connects, resets and steps, then stays open until it is closed. */
export interface SessionPlay {
  /** Never rejects. */
  readonly outcome: Promise<SessionOutcome>;
  /** Says goodbye. Resolves when the socket is closed, by force if need be. */
  close(): Promise<void>;
}

/** A server that does not answer a goodbye is left, ms. */
const CLOSE_TIMEOUT_MS = 5000;

/** Starts to play a session at `socketUrl`, for instance `ws://localhost:8000/ws`. */
export function playSession(socketUrl: string, plan: SessionPlan): SessionPlay {
  const startedAt = performance.now();
  const socket = new WebSocket(socketUrl, { headers: plan.headers, perMessageDeflate: false });
  const { promise: outcome, resolve } = Promise.withResolvers<SessionOutcome>();
  let phase: 'connect' | 'reset' | 'step' = 'connect';
  let connectedAt = 0;
  let resetAt = 0;
  let stepsLeft = plan.steps;
  const stepText = JSON.stringify({ type: 'step', data: plan.action });

  const fail = (failure: string) => settle({ failure });
  const timer = setTimeout(() => fail(`TIMEOUT in ${phase}`), plan.timeoutMs);
  let settled = false;
  function settle(result: SessionOutcome): void {
    if (settled) return;
    settled = true;
    clearTimeout(timer);
    resolve(result);
  }

  socket.once('open', () => {
    connectedAt = performance.now();
    phase = 'reset';
    socket.send('{"type":"reset","data":{}}');
  });
  socket.on('message', (data) => {
    if (settled) return;
    const now = performance.now();
    const reply = readReply(data.toString());
    if (typeof reply === 'string') {
      fail(reply);
    } else if (phase === 'reset' || --stepsLeft > 0) {
      if (phase === 'reset') resetAt = now;
      phase = 'step';
      socket.send(stepText);
    } else {
      settle({
        failure: null,
        connectMs: connectedAt - startedAt,
        resetMs: resetAt - connectedAt,
        stepMs: (now - resetAt) / plan.steps,
        totalMs: now - startedAt,
        answeredBy: answeredBy(reply),
      });
    }
  });
  socket.once('unexpected-response', (request, response) => {
    fail(`HTTP ${response.statusCode}`);
    response.resume();
    request.destroy();
  });
  socket.on('error', (error: NodeJS.ErrnoException) => fail(error.code ?? error.message));
  socket.on('close', (code) => fail(`closed with code ${code} in ${phase}`));

  return { outcome, close: () => close(socket) };
}

/** The observation of a reply, or why there is none. */
function readReply(text: string): Record<string, unknown> | string {
  let message: { type?: unknown; data?: { code?: unknown; observation?: unknown } } | null;
  try {
    message = JSON.parse(text);
  } catch {
    return 'a reply that is not JSON';
  }
  if (message?.type === 'error') return String(message.data?.code ?? 'an error without a code');
  const observation = message?.data?.observation;
  if (message?.type !== 'observation' || typeof observation !== 'object' || observation === null) {
    return `a reply of type ${String(message?.type).slice(0, 40)}`;
  }
  return observation as Record<string, unknown>;
}

function answeredBy({ host_url, pid }: Record<string, unknown>): string | null {
  if (typeof host_url !== 'string') return null;
  return typeof pid === 'number' ? `${host_url} pid ${pid}` : host_url;
}

function close(socket: WebSocket): Promise<void> {
  if (socket.readyState === WebSocket.CLOSED) return Promise.resolve();
  if (socket.readyState === WebSocket.OPEN) socket.send('{"type":"close"}');
  socket.close(1000);
  const timer = setTimeout(() => socket.terminate(), CLOSE_TIMEOUT_MS);
  return new Promise((resolve) => {
    socket.once('close', () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
