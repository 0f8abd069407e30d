import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { WebSocket } from 'ws';
import { quantile } from '../harness.ts';

export interface VectorLoad {
  readonly url: string;
  readonly count: number;
  readonly format: 'json' | 'float32';
  readonly seconds: number;
}

const WARM_UP_S = 1;

/** Steps N no-op environments in one message, again and again, for some seconds after a warm-up. */
export async function run({ url, count, format, seconds }: VectorLoad) {
  const choices = Array.from({ length: count }, (_, index) => index % 10);
  const step =
    format === 'json'
      ? JSON.stringify({ type: 'vector_step', data: { actions: choices.map((choice) => ({ choice })) } })
      : new Uint8Array(Float32Array.from(choices).buffer);
  const socket = new WebSocket(`${url.replace(/^http/, 'ws')}/ws`, {
    perMessageDeflate: false,
    maxPayload: 0,
  });
  await once(socket, 'open');
  socket.send(JSON.stringify({ type: 'vector_reset', data: { count, seed: 0, format } }));
  const [reset] = await once(socket, 'message');
  if (!String(reset).startsWith('{"type":"vector"')) throw new Error(`The server answered ${reset}`);

  const latencies: number[] = [];
  let sentAt = performance.now();
  let isOver = false;
  socket.on('message', (data: Buffer, isBinary: boolean) => {
    const now = performance.now();
    if (!isBinary && data.toString('latin1', 0, 16) !== '{"type":"vector"')
      throw new Error(`The server answered a step with ${data}`);
    latencies.push(now - sentAt);
    sentAt = now;
    if (isOver) socket.close();
    else socket.send(step);
  });
  socket.send(step);
  await sleep(1000 * WARM_UP_S);
  latencies.length = 0;
  const startedAt = performance.now();
  await sleep(1000 * seconds);
  const measured = latencies.slice();
  const elapsedS = (performance.now() - startedAt) / 1000;
  isOver = true;
  return {
    environment_steps_per_s: (measured.length * count) / elapsedS,
    /** From sending a message to its reply, ms. */
    p50_ms: quantile(measured, 0.5),
    p99_ms: quantile(measured, 0.99),
  };
}
