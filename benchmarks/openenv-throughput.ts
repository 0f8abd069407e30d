// Steps a second and their latency, on our server, on our server keeping its sessions in SQLite, and on OpenEnv's own
// Python server (one uvicorn worker): the same no-op environment, the same load in a process of its own, in turns. Then
// the vector extension, which steps many environments with one message. Medians over the rounds.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { median } from './openenv/quantile.ts';
import { runLoad } from './openenv/run-load.ts';
import { type ServerProcess, startServer } from './openenv/server-process.ts';
import type { StepMeasurement } from './openenv/step-measurement.ts';
import type { VectorMeasurement } from './openenv/vector-measurement.ts';

const { values } = parseArgs({
  options: {
    connections: { type: 'string', default: '1,8,64,256,1000' },
    environments: { type: 'string', default: '64,1024,8192' },
    seconds: { type: 'string', default: '3' },
    rounds: { type: 'string', default: '3' },
    json: { type: 'boolean', default: false },
  },
});
const root = join(import.meta.dirname, '..');
const python = process.env.SERVEGYM_PYTHON ?? join(root, '.venv', 'bin', 'python');
const rounds = Number(values.rounds);

const folder = mkdtempSync(join(tmpdir(), 'servegym-throughput-'));
const starts: Record<string, () => Promise<ServerProcess>> = {
  reference: () => startServer(python, 'no_op_server.py'),
  ours: () => startServer(process.execPath, 'no-op-server.ts'),
  'ours, durable': () => startServer(process.execPath, 'no-op-server.ts', join(folder, 'sessions.sqlite')),
};
const servers: Record<string, ServerProcess> = {};
try {
  for (const [name, start] of Object.entries(starts)) servers[name] = await start();
  const steps = await measureSteps();
  const vectors = await measureVectors();
  if (values.json) console.log(JSON.stringify({ steps, vectors }));
  else {
    console.table(steps);
    console.table(vectors);
  }
} finally {
  await Promise.all(Object.values(servers).map((server) => server.stop()));
  rmSync(folder, { recursive: true });
}

async function measureSteps() {
  const rows = [];
  for (const connections of values.connections.split(',').map(Number)) {
    const measured: Record<string, StepMeasurement[]> = {};
    for (let round = 0; round < rounds; round++) {
      for (const [name, { url }] of Object.entries(servers)) {
        const options = { url, connections, seconds: values.seconds };
        measured[name] ??= [];
        measured[name].push(await runLoad<StepMeasurement>('step-load.ts', options));
      }
    }
    const reference = middle(measured.reference!);
    for (const [name, measurements] of Object.entries(measured)) {
      const own = middle(measurements);
      rows.push({
        connections,
        server: name,
        steps_per_s: Math.round(own.steps_per_s),
        times_reference: Number((own.steps_per_s / reference.steps_per_s).toFixed(1)),
        p50_ms: Number(own.p50_ms.toFixed(3)),
        p99_ms: Number(own.p99_ms.toFixed(3)),
        p99_of_reference: Number((own.p99_ms / reference.p99_ms).toFixed(2)),
        open_s: Number(own.open_s.toFixed(3)),
        load_cpu: Number(own.load_cpu.toFixed(2)),
      });
    }
  }
  return rows;
}

function middle(measurements: readonly StepMeasurement[]) {
  const of = (name: Exclude<keyof StepMeasurement, 'connections'>) =>
    median(measurements.map((measurement) => measurement[name]));
  return {
    steps_per_s: of('steps_per_s'),
    p50_ms: of('p50_ms'),
    p99_ms: of('p99_ms'),
    open_s: of('open_s'),
    load_cpu: of('load_cpu'),
  };
}

async function measureVectors() {
  const rows = [];
  for (const format of ['json', 'float32']) {
    for (const count of values.environments.split(',').map(Number)) {
      const measured: VectorMeasurement[] = [];
      for (let round = 0; round < rounds; round++) {
        const options = { url: servers.ours!.url, count, format, seconds: values.seconds };
        measured.push(await runLoad<VectorMeasurement>('vector-load.ts', options));
      }
      rows.push({
        format,
        environments: count,
        environment_steps_per_s: Math.round(median(measured.map((one) => one.environment_steps_per_s))),
        p50_ms: Number(median(measured.map((one) => one.p50_ms)).toFixed(3)),
        p99_ms: Number(median(measured.map((one) => one.p99_ms)).toFixed(3)),
      });
    }
  }
  return rows;
}
