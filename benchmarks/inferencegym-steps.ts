// inferencegym steps per second in process, on one core, with the traffic drawn and the observations read, and the
// memory that the table and the episodes take.
import { parseArgs } from 'node:util';
import { type GymAction, GymEpisode, inferencegym } from '@servegym/environments';

const { values } = parseArgs({
  options: {
    episodes: { type: 'string', default: '2000' },
    json: { type: 'boolean', default: false },
  },
});

const EPISODES = Number(values.episodes);
const started = performance.now();
const world = await inferencegym.shippedWorld();
const loadMs = performance.now() - started;

const actions: Record<string, Partial<GymAction>> = {
  baseline: {},
  'batch 192, KV 0.7': { batch_size: 192, kv_budget: 0.7 },
  'INT8, split, depth 2': { quant_tier: 1, prefill_disagg: true, spec_length: 2, kv_budget: 0.3 },
};

const rows = [];
for (const task of inferencegym.tasks.shippedIds) {
  for (const [name, change] of Object.entries(actions)) {
    const action = { ...inferencegym.defaultAction, ...change };
    const play = (episodes: number) => {
      let steps = 0;
      for (let seed = 0; seed < episodes; seed++) {
        const episode = new GymEpisode(inferencegym.tasks.shipped[task], seed, world);
        while (!episode.done) {
          episode.step(action);
          episode.observation();
          steps++;
        }
      }
      return steps;
    };
    play(EPISODES / 10);
    const before = { wall: performance.now(), cpu: process.cpuUsage() };
    const steps = play(EPISODES);
    const wall = (performance.now() - before.wall) / 1000;
    const { user, system } = process.cpuUsage(before.cpu);
    rows.push({
      task,
      action: name,
      steps_per_s: Math.round(steps / wall),
      steps_per_cpu_s: Math.round((steps / (user + system)) * 1e6),
    });
  }
}
const memory = { load_ms: Math.round(loadMs), rss_mb: Math.round(process.memoryUsage.rss() / 1e6) };
if (values.json) {
  console.log(JSON.stringify({ ...memory, rows }));
} else {
  console.table(rows);
  console.log(`Table loaded in ${memory.load_ms} ms; the process takes ${memory.rss_mb} MB.`);
}
