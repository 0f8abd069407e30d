// A load of its own process. Opens sessions on a server and keeps each stepping, one step under way at a time, for some
// seconds after a warm-up. Prints what it measured as JSON.
import { parseArgs } from 'node:util';
import { BareSocket, clientFrame } from './bare-socket.ts';
import { quantile } from './quantile.ts';
import type { StepMeasurement } from './step-measurement.ts';

const { values } = parseArgs({
  options: {
    url: { type: 'string', default: '' },
    connections: { type: 'string', default: '1' },
    seconds: { type: 'string', default: '3' },
    'warm-up': { type: 'string', default: '1' },
  },
});

const RESET = clientFrame('{"type":"reset","data":{}}');
const STEP = clientFrame('{"type":"step","data":{"choice":3}}');
const OPENING_AT_ONCE = 32;
const EXPECTED = '{"type":"observation"';

const connections = Number(values.connections);
const openedAt = performance.now();
const sockets: BareSocket[] = [];
while (sockets.length < connections) {
  const count = Math.min(OPENING_AT_ONCE, connections - sockets.length);
  sockets.push(...(await Promise.all(Array.from({ length: count }, () => BareSocket.open(values.url)))));
}
for (const reply of await Promise.all(sockets.map((socket) => socket.ask(RESET)))) {
  if (!reply.startsWith(EXPECTED)) throw new Error(`The server answered a reset with ${reply}`);
}
const openS = (performance.now() - openedAt) / 1000;

const latencies: number[] = [];
const lastReplies: Promise<void>[] = [];
let isOver = false;
for (const socket of sockets) {
  let sentAt = 0;
  const { promise, resolve } = Promise.withResolvers<void>();
  lastReplies.push(promise);
  socket.onMessage = (payload) => {
    const now = performance.now();
    if (payload.toString('latin1', 0, EXPECTED.length) !== EXPECTED) {
      throw new Error(`The server answered a step with ${payload}`);
    }
    latencies.push(now - sentAt);
    sentAt = now;
    if (isOver) resolve();
    else socket.send(STEP);
  };
  sentAt = performance.now();
  socket.send(STEP);
}
await elapse(Number(values['warm-up']));
const cpu = process.cpuUsage();
latencies.length = 0;
const startedAt = performance.now();
await elapse(Number(values.seconds));
const measured = Float64Array.from(latencies).sort();
const elapsedS = (performance.now() - startedAt) / 1000;
const { user, system } = process.cpuUsage(cpu);
isOver = true;
await Promise.all(lastReplies);
await Promise.all(sockets.map((socket) => socket.close()));

const measurement: StepMeasurement = {
  connections,
  steps_per_s: measured.length / elapsedS,
  p50_ms: quantile(measured, 0.5),
  p99_ms: quantile(measured, 0.99),
  open_s: openS,
  load_cpu: (user + system) / 1e6 / elapsedS,
};
console.log(JSON.stringify(measurement));

function elapse(seconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, seconds * 1000));
}
