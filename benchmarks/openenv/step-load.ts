import { setTimeout as sleep } from 'node:timers/promises';
import { quantile } from '../harness.ts';
import { BareSocket, clientFrame } from './bare-socket.ts';

export interface StepLoad {
  readonly url: string;
  readonly connections: number;
  readonly seconds: number;
  /** Data of the messages. Default: those of the no-op environment. A reset of a session takes its number as its seed. */
  readonly reset?: object;
  readonly step?: object;
}

const WARM_UP_S = 1;
const OPENING_AT_ONCE = 32;
const EXPECTED = '{"type":"observation"';

/**
 * Opens sessions on a server and keeps each stepping, one step under way at a time and one episode after another, for some
 * seconds after a warm-up. In a process of its own, since it shares the machine with the server.
 */
export async function run({ url, connections, seconds, reset = {}, step }: StepLoad) {
  const STEP = clientFrame(JSON.stringify({ type: 'step', data: step ?? { choice: 3 } }));
  const resetOf = (seed: number) => clientFrame(JSON.stringify({ type: 'reset', data: { ...reset, seed } }));
  const openedAt = performance.now();
  const sockets: BareSocket[] = [];
  while (sockets.length < connections) {
    const count = Math.min(OPENING_AT_ONCE, connections - sockets.length);
    sockets.push(...(await Promise.all(Array.from({ length: count }, () => BareSocket.open(url)))));
  }
  const replies = await Promise.all(sockets.map((socket, seed) => socket.ask(resetOf(seed))));
  for (const reply of replies)
    if (!reply.startsWith(EXPECTED)) throw new Error(`The server answered a reset with ${reply}`);
  const openS = (performance.now() - openedAt) / 1000;

  const latencies: number[] = [];
  const lastReplies: Promise<void>[] = [];
  let isOver = false;
  for (const [seed, socket] of sockets.entries()) {
    const RESET = resetOf(seed);
    let sentAt = 0;
    let isStep = true;
    const { promise, resolve } = Promise.withResolvers<void>();
    lastReplies.push(promise);
    socket.onMessage = (payload) => {
      const now = performance.now();
      if (payload.toString('latin1', 0, EXPECTED.length) !== EXPECTED)
        throw new Error(`The server answered a step with ${payload}`);
      if (isStep) latencies.push(now - sentAt);
      isStep = !payload.includes('"done":true');
      sentAt = now;
      if (isOver) resolve();
      else socket.send(isStep ? STEP : RESET);
    };
    sentAt = performance.now();
    socket.send(STEP);
  }
  await sleep(1000 * WARM_UP_S);
  const cpu = process.cpuUsage();
  latencies.length = 0;
  const startedAt = performance.now();
  await sleep(1000 * seconds);
  const measured = latencies.slice();
  const elapsedS = (performance.now() - startedAt) / 1000;
  const { user, system } = process.cpuUsage(cpu);
  isOver = true;
  await Promise.all(lastReplies);
  await Promise.all(sockets.map((socket) => socket.close()));
  return {
    steps_per_s: measured.length / elapsedS,
    /** From sending a step to its reply, ms. */
    p50_ms: quantile(measured, 0.5),
    p99_ms: quantile(measured, 0.99),
    /** To open all sessions and reset them, s. */
    open_s: openS,
    /** Share of a core that the load took. Near 1 it is the load that was measured. */
    load_cpu: (user + system) / 1e6 / elapsedS,
  };
}
