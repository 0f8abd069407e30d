/**
 * Classic policies on the tasks of `fleet`: mean return, USD and SLO attainment over seeds of a split, and the speed of
 * the environment in process.
 *
 *     npx node benchmarks/fleet.ts [--tasks diurnal,agents] [--policies hpa,rule] [--seeds 4] [--split train]
 */
import { parseArgs } from 'node:util';
import { createFleetPolicy } from '@servegym/agents';
import {
  drawFleetRequests,
  FLEET_TASK_IDS,
  FLEET_TASKS,
  type FleetTaskId,
  firstSeeds,
  type SeedSplit,
} from '@servegym/environments';
import { type FleetRun, playFleet } from '../packages/servegym/src/cli/fleet/play-fleet.ts';

const { values } = parseArgs({
  options: {
    tasks: { type: 'string', default: FLEET_TASK_IDS.join(',') },
    policies: {
      type: 'string',
      default:
        'static:4,static:6,static:8,static:10,static:12,hpa:20,hpa:30,hpa:40,hpa:60,keda,saturation,sla-planner,prefix-router,p-pas,rule',
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
    const runs = seeds.map((seed, i) => playFleet(task, seed, drawn[i], createFleetPolicy(name)));
    const speed = (seeds.length * task.windows * 1000) / (performance.now() - begin);
    const mean = (of: (run: FleetRun) => number) => runs.reduce((sum, run) => sum + of(run), 0) / runs.length;
    const usd = (amount: number) => amount.toFixed(2).padStart(8);
    console.log(
      [
        name.padEnd(14),
        mean(({ revenueUsd, gpuUsd }) => (revenueUsd - gpuUsd) / task.referenceUsd)
          .toFixed(1)
          .padStart(9),
        usd(mean(({ revenueUsd, gpuUsd }) => revenueUsd - gpuUsd)),
        usd(mean(({ revenueUsd }) => revenueUsd)),
        usd(mean(({ gpuUsd }) => gpuUsd)),
        mean(({ inSlo, requests }) => inSlo / requests)
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
