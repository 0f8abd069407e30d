// A load of its own process. Steps N environments in one message, again and again, for some seconds after a warm-up.
// Prints what it measured as JSON.
import { once } from 'node:events';
import { parseArgs } from 'node:util';
import { WebSocket } from 'ws';
import { quantile } from './quantile.ts';
import type { VectorMeasurement } from './vector-measurement.ts';

const { values } = parseArgs({
  options: {
    url: { type: 'string', default: '' },
    count: { type: 'string', default: '1024' },
    format: { type: 'string', default: 'float32' },
    seconds: { type: 'string', default: '3' },
    'warm-up': { type: 'string', default: '1' },
  },
});

const count = Number(values.count);
const format = values.format === 'json' ? 'json' : 'float32';
const choices = Array.from({ length: count }, (_, index) => index % 10);
const step =
  format === 'json'
    ? JSON.stringify({ type: 'vector_step', data: { actions: choices.map((choice) => ({ choice })) } })
    : new Uint8Array(Float32Array.from(choices).buffer);

const socket = new WebSocket(`${values.url.replace(/^http/, 'ws')}/ws`, {
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
  if (!isBinary && data.toString('latin1', 0, 16) !== '{"type":"vector"') {
    throw new Error(`The server answered a step with ${data}`);
  }
  latencies.push(now - sentAt);
  sentAt = now;
  if (isOver) socket.close();
  else socket.send(step);
});
socket.send(step);
await elapse(Number(values['warm-up']));
latencies.length = 0;
const startedAt = performance.now();
await elapse(Number(values.seconds));
const measured = Float64Array.from(latencies).sort();
const elapsedS = (performance.now() - startedAt) / 1000;
isOver = true;

const measurement: VectorMeasurement = {
  format,
  environments: count,
  environment_steps_per_s: (measured.length * count) / elapsedS,
  p50_ms: quantile(measured, 0.5),
  p99_ms: quantile(measured, 0.99),
};
console.log(JSON.stringify(measurement));

function elapse(seconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, seconds * 1000));
}
