import { type GymAction, GymEpisode, inferencegym, llmserve, ServeEpisode } from '@servegym/environments';
import { benchmark, timed } from '../harness.ts';

const TRAFFIC_SEEDS = 4;
const SNAPSHOTS = 2000;

const SERVE_ACTIONS = {
  default: {},
  'cap 96': { batch_cap: 96 },
  'cap 96, depth 2': { batch_cap: 96, speculation_depth: 2 },
};
const GYM_ACTIONS: Readonly<Record<string, Partial<GymAction>>> = {
  baseline: {},
  'batch 192, KV 0.7': { batch_size: 192, kv_budget: 0.7 },
  'INT8, split, depth 2': { quant_tier: 1, prefill_disagg: true, spec_length: 2, kv_budget: 0.3 },
};

export default benchmark({
  what: 'Steps a second of environments in process, on one core, with the observations read: windows of `llmserve`, and the time of a snapshot and a restore in mid-episode; steps of `inferencegym`.',
  options: { episodes: 40, 'gym-episodes': 2000 },
  async *run({ episodes, 'gym-episodes': gymEpisodes }) {
    for (const task of llmserve.tasks.shippedIds)
      for (const action of Object.keys(SERVE_ACTIONS) as (keyof typeof SERVE_ACTIONS)[])
        yield { task, action, ...(await serveSteps(task, action, episodes)) };
    const world = await inferencegym.shippedWorld();
    for (const [id, task] of Object.entries(inferencegym.tasks.shipped)) {
      for (const [name, change] of Object.entries(GYM_ACTIONS)) {
        const action = { ...inferencegym.defaultAction, ...change };
        const play = (count: number) => {
          let steps = 0;
          for (let seed = 0; seed < count; seed++)
            for (const episode = new GymEpisode(task, seed, world); !episode.done; steps++) {
              episode.step(action);
              episode.observation();
            }
          return steps;
        };
        play(gymEpisodes / 10);
        const { result: steps, wallS, cpuS } = await timed(() => play(gymEpisodes));
        yield { task: id, action: name, 'steps/s': steps / wallS, 'steps/s of processor time': steps / cpuS };
      }
    }
    yield `The process takes ${Math.round(process.memoryUsage.rss() / 1e6)} MB.`;
  },
});

async function serveSteps(
  id: (typeof llmserve.tasks.shippedIds)[number],
  name: keyof typeof SERVE_ACTIONS,
  episodes: number,
) {
  const task = llmserve.tasks.shipped[id];
  const action = { ...task.defaultAction, ...SERVE_ACTIONS[name] };
  const drawn = Array.from({ length: TRAFFIC_SEEDS }, (_, seed) => llmserve.drawRequests(task, seed));
  const play = (count: number) => {
    let windows = 0;
    let requests = 0;
    for (let i = 0; i < count; i++) {
      const episode = new ServeEpisode(task, i % TRAFFIC_SEEDS, { requests: drawn[i % TRAFFIC_SEEDS] });
      for (; !episode.done; windows++) {
        episode.step(action);
        episode.observation();
      }
      requests += episode.totals.requestsServed;
    }
    return { windows, requests };
  };
  play(episodes / 4);
  const { result, wallS } = await timed(() => play(episodes));

  const episode = new ServeEpisode(task, 1);
  for (let window = 0; window < task.windows / 2; window++) episode.step(action);
  const snapshots = () => {
    for (let i = 0; i < SNAPSHOTS; i++) episode.restore(episode.snapshot());
  };
  snapshots();
  const { wallS: snapshotsS } = await timed(snapshots);
  return {
    'windows/s': result.windows / wallS,
    'requests/s': result.requests / wallS,
    'snapshot and restore, us': (snapshotsS / SNAPSHOTS) * 1e6,
  };
}
