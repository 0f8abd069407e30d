// Environment steps a second over WebSockets. Each connection is a session that sends a step as soon as it has the
// answer to the last one. The load comes from this process and shares the machine with the server.
import { once } from 'node:events';
import { parseArgs } from 'node:util';
import { llmserve } from '@servegym/environments';
import { WebSocket } from 'ws';
import { serve } from './serve.ts';

const WARM_UP_S = 1;
const STEP = JSON.stringify({ type: 'step', data: llmserve.defaultAction });

const { values } = parseArgs({
  options: {
    url: { type: 'string' },
    task: { type: 'string', default: 'static_workload' },
    connections: { type: 'string', default: '1,8,64' },
    seconds: { type: 'string', default: '5' },
    json: { type: 'boolean', default: false },
  },
});

interface Measurement {
  readonly connections: number;
  readonly steps_per_s: number;
  readonly p50_ms: number;
  readonly p99_ms: number;
}

/** Plays episodes one after another, and tells how long each step took from `send` to answer. */
class Player {
  readonly #socket: WebSocket;
  readonly #reset: string;
  readonly #onStep: (ms: number) => void;
  #sentAt = 0;
  #isStep = false;

  constructor(socket: WebSocket, seed: number, onStep: (ms: number) => void) {
    this.#socket = socket;
    this.#reset = JSON.stringify({ type: 'reset', data: { task_id: values.task, seed } });
    this.#onStep = onStep;
    socket.on('message', (data) => this.#receive(data.toString()));
  }

  start(): void {
    this.#send(this.#reset, false);
  }

  #receive(text: string): void {
    if (text.startsWith('{"type":"error"')) throw new Error(`The server answered ${text}`);
    if (this.#isStep) this.#onStep(performance.now() - this.#sentAt);
    const isDone = JSON.parse(text).data.done;
    this.#send(isDone ? this.#reset : STEP, !isDone);
  }

  #send(text: string, isStep: boolean): void {
    if (this.#socket.readyState !== WebSocket.OPEN) return;
    this.#isStep = isStep;
    this.#sentAt = performance.now();
    this.#socket.send(text);
  }
}

async function measure(url: string, connections: number, seconds: number): Promise<Measurement> {
  const address = `${url.replace(/^http/, 'ws')}/ws`;
  const sockets = Array.from(
    { length: connections },
    () => new WebSocket(address, { perMessageDeflate: false }),
  );
  await Promise.all(sockets.map((socket) => once(socket, 'open')));
  let latencies: number[] = [];
  for (const [seed, socket] of sockets.entries()) {
    new Player(socket, seed, (ms) => latencies.push(ms)).start();
  }
  await elapse(WARM_UP_S);
  latencies = [];
  const startedAt = performance.now();
  await elapse(seconds);
  const measured = latencies;
  const elapsedS = (performance.now() - startedAt) / 1000;
  await Promise.all(
    sockets.map((socket) => {
      socket.close();
      return once(socket, 'close');
    }),
  );
  const sorted = Float64Array.from(measured).sort();
  const quantile = (share: number) => sorted[Math.floor(share * (sorted.length - 1))] ?? Number.NaN;
  return {
    connections,
    steps_per_s: Math.round(measured.length / elapsedS),
    p50_ms: Number(quantile(0.5).toFixed(3)),
    p99_ms: Number(quantile(0.99).toFixed(3)),
  };
}

function elapse(seconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, seconds * 1000));
}

const server = values.url ? undefined : await serve();
const measurements: Measurement[] = [];
for (const connections of values.connections.split(',').map(Number)) {
  measurements.push(await measure(values.url ?? server!.url, connections, Number(values.seconds)));
}
await server?.stop();
if (values.json) console.log(JSON.stringify(measurements));
else console.table(measurements);
