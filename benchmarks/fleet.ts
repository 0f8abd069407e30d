/**
 * Classic policies on the tasks of `fleet`: mean return, USD and SLO attainment over seeds of a split, and the speed of
 * the environment in process. Without `--policies`: a constant search, then all others.
 *
 *     npx node benchmarks/fleet.ts [--tasks diurnal,agents] [--policies hpa,rule] [--seeds 4] [--split train]
 */
import { parseArgs } from 'node:util';
import { createFleetPolicy } from '@servegym/agents';
import {
  drawFleetRequests,
  FLEET_TASK_IDS,
  FLEET_TASKS,
  FleetEpisode,
  type FleetTaskId,
  firstSeeds,
  type SeedSplit,
} from '@servegym/environments';

const { values } = parseArgs({
  options: {
    tasks: { type: 'string', default: FLEET_TASK_IDS.join(',') },
    policies: {
      type: 'string',
      default:
        'static:4,static:6,static:8,static:10,static:12,hpa:20,hpa:30,hpa:40,hpa:60,keda,saturation,rule',
    },
    seeds: { type: 'string', default: '4' },
    split: { type: 'string', default: 'train' },
  },
});

for (const id of values.tasks.split(',') as FleetTaskId[]) {
  const task = FLEET_TASKS[id];
  const seeds = firstSeeds(values.split as SeedSplit, Number(values.seeds));
  const drawn = seeds.map((seed) => drawFleetRequests(task, seed));
  console.log(`\n${id}, ${seeds.length} ${values.split} seeds`);
  console.log('policy            return     USD  revenue     GPUs  in SLO  refused  windows/s');
  for (const name of values.policies.split(',')) {
    const begin = performance.now();
    const episodes = seeds.map((seed, i) => {
      const policy = createFleetPolicy(name);
      const episode = new FleetEpisode(task, seed, drawn[i]);
      policy.reset({ taskId: id, seed });
      let reward: number | null = null;
      while (!episode.done) {
        const { window: stepIndex, action: previousAction } = episode;
        const observation = episode.observation();
        reward = episode.step(policy.act({ observation, reward, previousAction, stepIndex }));
      }
      return episode.totals;
    });
    const speed = (seeds.length * task.windows * 1000) / (performance.now() - begin);
    const mean = (of: (totals: FleetEpisode['totals']) => number) =>
      episodes.reduce((sum, totals) => sum + of(totals), 0) / episodes.length;
    const usd = (amount: number) => amount.toFixed(2).padStart(8);
    console.log(
      [
        name.padEnd(14),
        mean(({ reward }) => reward)
          .toFixed(1)
          .padStart(9),
        usd(mean(({ revenueUsd, gpuUsd }) => revenueUsd - gpuUsd)),
        usd(mean(({ revenueUsd }) => revenueUsd)),
        usd(mean(({ gpuUsd }) => gpuUsd)),
        mean(({ attained, requests }) => attained / requests)
          .toFixed(3)
          .padStart(7),
        mean(({ refused, requests }) => refused / requests)
          .toFixed(3)
          .padStart(8),
        speed.toFixed(0).padStart(10),
      ].join(' '),
    );
  }
}
