import type { FleetView, PolicyFunctions, ReplicaView, RequestView } from '@servegym/simulator';
import { playPython, pythonOf } from '../../packages/servegym/src/cli/policy/python-guest.ts';
import templates from '../../packages/servegym/src/cli/policy/python-templates.json' with { type: 'json' };
import { benchmark, median } from '../harness.ts';

const request = (row: number) =>
  ({ prompt_tokens: 100 + row, priority: 0, arrival: row / 10 }) as RequestView;
const replica = (index: number) =>
  ({
    ...{ index, kind: 0, role: 'both', num_requests_running: 9, num_requests_waiting: index, weight: 1 },
    ...{
      kv_cache_usage_perc: 0.5,
      requests_sent: 0,
      requests_in_flight: 9,
      scrape_age: 0,
      prefix_match: 0.25,
    },
  }) as ReplicaView;

export default benchmark({
  what: 'Calls a second of policies in Python, the templates of `servegym policy new --python`, by wall time and by the processor time of both processes: `score` for a request to 8 replicas, `order` for a queue of 100 requests, `scale`.',
  options: { calls: 20_000, runs: 5 },
  async *run({ calls, runs }) {
    const replicas = Array.from({ length: 8 }, (_, index) => replica(index));
    const queue = Array.from({ length: 100 }, (_, row) => request(row));
    const fleet = { replicas, num_requests_held: 0, queue_seconds: 1 } as unknown as FleetView;
    const metrics = { num_requests_running: 40, num_requests_waiting: 3 };
    const asks: Readonly<Record<string, (functions: PolicyFunctions<unknown>, now: number) => unknown>> = {
      score: ({ score }, now) => {
        const asked = request(now);
        for (const each of replicas) score!(asked, each, now, fleet);
      },
      order: ({ order }, now) => order!(queue, now),
      scale: ({ scale }, now) => scale!(metrics, { replicas: 8 }, now),
    };
    for (const [kind, name] of Object.entries({ router: 'score', scheduler: 'order', autoscaler: 'scale' })) {
      const source = templates[kind as keyof typeof templates].join('\n');
      const policy = { source, file: `${kind}.py`, seconds: 60, python: pythonOf(process.env) };
      const { functions, spentMs, close } = playPython(policy, () => 0.5);
      const rates: [wall: number, processor: number][] = [];
      for (let run = 0; run < runs; run++) {
        const [wall, node, python] = [performance.now(), process.cpuUsage(), spentMs()];
        for (let at = 0; at < calls; at++) asks[name](functions, at);
        const { user, system } = process.cpuUsage(node);
        const cpuMs = (user + system) / 1000 + spentMs() - python;
        rates.push([(1000 * calls) / (performance.now() - wall), (1000 * calls) / cpuMs]);
      }
      close();
      const middle = (of: 0 | 1) => Math.round(median(rates.map((rate) => rate[of])));
      yield {
        function: name,
        'calls/s': middle(0),
        best: Math.round(Math.max(...rates.map(([wall]) => wall))),
        'by processor time': middle(1),
      };
    }
  },
});
