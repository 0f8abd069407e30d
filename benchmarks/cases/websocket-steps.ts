import { resolve } from 'node:path';
import { llmserve } from '@servegym/environments';
import { startServe } from '../../maintenance/test-servers/servegym.ts';
import { inChild } from '../child.ts';
import { benchmark, text } from '../harness.ts';
import type { StepMeasurement } from '../openenv/step-load.ts';

export default benchmark({
  what: 'Steps a second of `llmserve` over WebSockets, and how long a step takes. Each connection is a session that sends a step as soon as it has the answer to the last one. The load shares the machine with the server, or with that of `--url`.',
  options: { url: text, task: 'static_workload', connections: [1, 8, 64], seconds: 5 },
  async *run({ url, task, connections, seconds }) {
    const server = url === undefined ? await startServe() : undefined;
    const reset = { task_id: task };
    const step = llmserve.tasks.shipped[task as 'static_workload'].defaultAction;
    try {
      for (const count of connections) {
        const input = { url: url ?? server!.url, connections: count, seconds, reset, step };
        const load = resolve(import.meta.dirname, '../openenv/step-load.ts');
        yield { connections: count, ...(await inChild<StepMeasurement>(load, input)) };
      }
    } finally {
      await server?.stop();
    }
  },
});
