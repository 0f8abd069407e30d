import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { inChild, type ServerProcess, startServer } from '../child.ts';
import { benchmark, median, type Row } from '../harness.ts';

const folder = resolve(import.meta.dirname, '../openenv');
const python = process.env.SERVEGYM_PYTHON ?? resolve(import.meta.dirname, '../../.venv/bin/python');

export default benchmark({
  what: "Steps a second and their latency on our server, on ours keeping its sessions in SQLite, and on OpenEnv's own Python server (one uvicorn worker): the same no-op environment, the same load in a process of its own, in turns. Then the vector extension, which steps many environments with one message. Medians over the rounds. Needs the Python of `npm test`.",
  options: { connections: [1, 8, 64, 256, 1000], environments: [64, 1024, 8192], seconds: 3, rounds: 3 },
  async *run({ connections, environments, seconds, rounds }) {
    const store = mkdtempSync(join(tmpdir(), 'servegym-throughput-'));
    const ours = join(folder, 'no-op-server.ts');
    const servers = new Map<string, ServerProcess>();
    try {
      servers.set('reference', await startServer(python, join(folder, 'no_op_server.py')));
      servers.set('ours', await startServer(process.execPath, ours));
      servers.set('ours, durable', await startServer(process.execPath, ours, join(store, 'sessions.sqlite')));
      for (const count of connections) {
        const measured = new Map<string, Record<string, number>[]>();
        for (let round = 0; round < rounds; round++)
          for (const [server, { url }] of servers) {
            const figures = await load('step-load.ts', { url, connections: count, seconds });
            measured.set(server, [...(measured.get(server) ?? []), figures]);
          }
        const reference = medians(measured.get('reference')!);
        for (const [server, figures] of measured) {
          const own = medians(figures);
          yield {
            connections: count,
            server,
            ...own,
            times_reference: own.steps_per_s / reference.steps_per_s,
            p99_of_reference: own.p99_ms / reference.p99_ms,
          };
        }
      }
      for (const format of ['json', 'float32'])
        for (const count of environments) {
          const measured: Record<string, number>[] = [];
          for (let round = 0; round < rounds; round++)
            measured.push(
              await load('vector-load.ts', { url: servers.get('ours')!.url, count, format, seconds }),
            );
          yield { format, environments: count, ...medians(measured) } as Row;
        }
    } finally {
      await Promise.all([...servers.values()].map((server) => server.stop()));
      rmSync(store, { recursive: true });
    }
  },
});

function load(file: string, input: object): Promise<Record<string, number>> {
  return inChild(join(folder, file), input);
}

/** The median of each figure. */
function medians(measured: readonly Record<string, number>[]): Record<string, number> {
  return Object.fromEntries(
    Object.keys(measured[0]).map((name) => [name, median(measured.map((figures) => figures[name]))]),
  );
}
