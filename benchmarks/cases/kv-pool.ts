import {
  llmserve,
  SEED_SPLITS,
  type ServeAction,
  ServeEpisode,
  type ServeTask,
} from '@servegym/environments';
import { benchmark } from '../harness.ts';

const WINDOWS = 16;
const SEEDS = 2;
const RATES = [10, 12.5, 15];
const POOLS = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1];
const CAPS = [32, 64, 96, 128, 256];
const DEPTHS = [0, 2];

const whole = llmserve.tasks.shipped.adversarial_multitenant;
const storm = whole.phases.find(({ name }) => name === 'storm')!;
export default benchmark({
  what: 'What KV memory earns and what it is charged for in the storms of `adversarial_multitenant`: storms alone, at both ends of their arrival rates and between, without tenants. For each share of the pool the best of batch caps, draft depths and orders of the queue, held throughout: reward a window from tokens and objectives, memory charge, and their sum.',
  options: {},
  *run() {
    for (const rate of RATES) {
      const phase = {
        ...storm,
        windows: [WINDOWS, WINDOWS],
        arrivalsPerSecond: [rate, rate],
        tenantGiB: [0, 0],
      } as const;
      const episodes = Array.from({ length: SEEDS }, (_, i) => {
        const seed = SEED_SPLITS.train.first + i;
        return {
          seed,
          requests: llmserve.drawRequests({ ...whole, windows: WINDOWS, phases: [phase] }, seed),
        };
      });
      for (const pool of POOLS) {
        let best = { earned: 0, charged: 0, sum: Number.NEGATIVE_INFINITY };
        for (const batch_cap of CAPS) {
          for (const speculation_depth of DEPTHS) {
            for (const priority_routing of [false, true]) {
              const knobs = { batch_cap, kv_budget_fraction: pool, speculation_depth, priority_routing };
              const action = { ...whole.defaultAction, ...knobs };
              const task = { ...whole, windows: WINDOWS, phases: [phase], defaultAction: action };
              const played = play(task, action, episodes);
              if (played.sum > best.sum) best = played;
            }
          }
        }
        yield { arrivals_per_s: rate, pool, ...best };
      }
    }
  },
});

/** Means of a window. */
function play(
  task: ServeTask,
  action: ServeAction,
  episodes: readonly { readonly seed: number; readonly requests: ReturnType<typeof llmserve.drawRequests> }[],
): { earned: number; charged: number; sum: number } {
  let earned = 0;
  let charged = 0;
  for (const { seed, requests } of episodes) {
    const episode = new ServeEpisode(task, seed, { requests });
    while (!episode.done) {
      episode.step(action);
      earned += episode.components.throughput + episode.components.slo;
      charged += episode.components.memory;
    }
  }
  const windows = WINDOWS * episodes.length;
  return { earned: earned / windows, charged: charged / windows, sum: (earned + charged) / windows };
}
