/**
 * Classic policies on the tasks of `fleet`: mean return, USD and SLO attainment over seeds of a split, and the speed of
 * the environment in process. With `--day`, instead, the time and memory of a day of about so many requests of `diurnal` on
 * at most `--replicas` replicas with gateway and HorizontalPodAutoscaler.
 *
 *     npx node benchmarks/fleet.ts [--tasks diurnal,agents] [--policies hpa,rule,FILE] [--seeds 4] [--split train]
 *     npx node benchmarks/fleet.ts --day 537600 --replicas 8
 *     npx node benchmarks/fleet.ts --recorded        # the tuned settings, and the recorded returns that scores are held against
 */

import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { AGENTS, findPolicy, isPolicyFile } from '@servegym/agents';
import { type FleetTaskId, firstSeeds, fleet, type SeedSplit } from '@servegym/environments';
import { type FleetRun, playFleet } from '../packages/servegym/src/cli/evaluate/play-fleet.ts';

const { values } = parseArgs({
  options: {
    tasks: { type: 'string', default: fleet.tasks.shippedIds.join(',') },
    policies: {
      type: 'string',
      default: 'static,hpa,keda,saturation,sla-planner,prefix-router,p-pas,rule',
    },
    seeds: { type: 'string', default: '4' },
    split: { type: 'string', default: 'train' },
    day: { type: 'string' },
    replicas: { type: 'string', default: '16' },
    recorded: { type: 'boolean', default: false },
  },
});

if (values.recorded) showRecorded();
else if (values.day === undefined) await comparePolicies();
else playDay(Number(values.day), Number(values.replicas));

/** The settings that were tuned for each task, and the returns that scores are held against. */
function showRecorded(): void {
  for (const id of fleet.tasks.shippedIds) {
    const { inFlightTarget, constantReplicas, rule } = fleet.anchors.reference(id)!;
    const parameters = Object.entries(rule).map(([name, value]) => `${name} ${value}`);
    console.log(`${id}: hpa:${inFlightTarget}, static:${constantReplicas}, rule ${parameters.join(', ')}`);
  }
  console.log('\ntask            seeds  default     rule  clairvoyant    bound  room');
  for (const id of fleet.tasks.shippedIds) {
    const seeds = Object.entries(fleet.anchors.reference(id)?.seeds ?? {});
    const mean = (of: (entry: (typeof seeds)[number]) => number) =>
      seeds.reduce((sum, entry) => sum + of(entry), 0) / seeds.length;
    const standard = mean(([, returns]) => returns.default);
    const rule = mean(([, returns]) => returns.rule);
    const clairvoyant = mean(([, returns]) => returns.clairvoyant);
    const task = fleet.tasks.shipped[id];
    const bound = mean(([seed]) => fleet.anchors.bound(task, fleet.drawRequests(task, Number(seed))));
    const room = (clairvoyant - rule) / (clairvoyant - standard);
    console.log(
      [
        id.padEnd(15),
        String(seeds.length).padStart(5),
        ...[standard, rule, clairvoyant, bound].map((each, i) => each.toFixed(1).padStart(i === 2 ? 12 : 8)),
        room.toFixed(2).padStart(5),
      ].join(' '),
    );
  }
}

function playDay(requests: number, maxReplicas: number): void {
  const seconds = 24 * 3600;
  const { diurnal } = fleet.tasks.shipped;
  const { windowSeconds, streams } = diurnal;
  const scale = requests / seconds / streams.reduce((sum, { rate }) => sum + rate.perSecond, 0);
  const task = {
    ...{ ...diurnal, windows: seconds / windowSeconds, maxReplicas },
    streams: streams.map((stream) => ({
      ...stream,
      rate: { ...stream.rate, perSecond: stream.rate.perSecond * scale },
    })),
  };
  const begin = performance.now();
  const drawn = fleet.drawRequests(task, 0);
  const drawS = (performance.now() - begin) / 1000;
  const cpu = process.cpuUsage();
  const run = playFleet(task, 0, drawn, AGENTS.fleet.createPolicy('hpa'));
  const { user, system } = process.cpuUsage(cpu);
  console.log(
    `${run.requests} requests, most replicas ${run.mostReplicas}: drawn in ${drawS.toFixed(1)} s, played in ${run.wallS.toFixed(1)} s (${((user + system) / 1e6).toFixed(1)} s of CPU), most memory ${(process.resourceUsage().maxRSS / 1024).toFixed(0)} MiB`,
  );
}

async function comparePolicies(): Promise<void> {
  for (const id of values.tasks.split(',') as FleetTaskId[]) {
    const task = fleet.tasks.shipped[id];
    const seeds = firstSeeds(values.split as SeedSplit, Number(values.seeds));
    const drawn = seeds.map((seed) => fleet.drawRequests(task, seed));
    console.log(`\n${id}, ${seeds.length} ${values.split} seeds`);
    console.log('policy            return     USD  revenue     GPUs  in SLO  refused  windows/s');
    for (const name of values.policies.split(',')) {
      const begin = performance.now();
      const { policy } = findPolicy('fleet', isPolicyFile(name) ? readFileSync(name) : name);
      const runs = seeds.map((seed, i) => playFleet(task, seed, drawn[i], policy as never));
      const speed = (seeds.length * task.windows * 1000) / (performance.now() - begin);
      const mean = (of: (run: FleetRun) => number) =>
        runs.reduce((sum, run) => sum + of(run), 0) / runs.length;
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
}
