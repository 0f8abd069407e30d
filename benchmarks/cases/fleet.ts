import { readFileSync } from 'node:fs';
import { AGENTS, type FleetPolicy, isPolicyFile } from '@servegym/agents';
import { addServeTrace, type FleetTaskId, firstSeeds, fleet, type SeedSplit } from '@servegym/environments';
import { sliceTrace } from '@servegym/operators';
import { readTrace } from '@servegym/operators/traces';
import { mean as meanOf, stratifiedBootstrap } from '@servegym/simulator/statistics';
import { isTrafficModel } from '../../packages/servegym/src/cli/arguments/scenario-options.ts';
import { type FleetRun, playFleet } from '../../packages/servegym/src/cli/evaluate/play-fleet.ts';
import { benchmark, type Row, timed } from '../harness.ts';

export default benchmark({
  what: 'Classic policies, and policies of files (`FILE:0.95` for 95 % of the requests in time), on the tasks of `fleet`: mean return, USD and SLO attainment over seeds of a split, with the USD over the first policy and their 95 % interval, and windows a second in process. `--traffic` plays models of public traces, or files of which the split `train` plays the first half and others the second. With `--day N`, instead, the time and memory of a day of about N requests of `diurnal` on at most `--replicas` replicas with gateway and HorizontalPodAutoscaler. With `--recorded`, the tuned settings, and the recorded returns that scores are held against.',
  options: {
    tasks: fleet.tasks.shippedIds.join(','),
    policies: 'static,hpa,keda,saturation,slo,aibrix,sla-planner,prefix-router,p-pas,spot,rule',
    ...{ shift: '', traffic: '', rateScale: 1, seeds: 4, split: 'train' },
    ...{ day: 0, replicas: 16, recorded: false },
  },
  async *run({ day, replicas, recorded, ...plan }) {
    if (recorded) yield* recordedReturns();
    else if (day > 0) yield await playDay(day, replicas);
    else yield* comparePolicies(plan);
  },
});

function* recordedReturns(): Generator<Row | string> {
  for (const id of fleet.tasks.shippedIds) {
    const { inFlightTarget, constantReplicas, rule } = fleet.anchors.reference(id)!;
    const parameters = Object.entries(rule).map(([name, value]) => `${name} ${value}`);
    yield `${id}: hpa:${inFlightTarget}, static:${constantReplicas}, rule ${parameters.join(', ')}`;
  }
  for (const id of fleet.tasks.shippedIds) {
    const task = fleet.tasks.shipped[id];
    const seeds = Object.entries(fleet.anchors.reference(id)?.seeds ?? {});
    const mean = (of: (entry: (typeof seeds)[number]) => number) => meanOf(seeds.map(of));
    const standard = mean(([, returns]) => returns.default);
    const rule = mean(([, returns]) => returns.rule);
    const clairvoyant = mean(([, returns]) => returns.clairvoyant);
    yield {
      task: id,
      seeds: seeds.length,
      ...{ default: standard, rule, clairvoyant },
      bound: mean(([seed]) => fleet.anchors.bound(task, fleet.drawRequests(task, Number(seed)))),
      room: (clairvoyant - rule) / (clairvoyant - standard),
    };
  }
}

async function playDay(requests: number, maxReplicas: number): Promise<Row> {
  const day = fleet.choose({ task_id: 'diurnal', hours: 24 });
  const usual = day.streams.reduce((sum, { rate }) => sum + rate.perSecond, 0);
  const task = { ...fleet.scaleArrivals(day, requests / (24 * 3600) / usual), maxReplicas };
  const drawn = await timed(() => fleet.drawRequests(task, 0));
  const { result, wallS, cpuS } = await timed(() =>
    playFleet(task, 0, drawn.result, AGENTS.fleet.createPolicy('hpa')),
  );
  return {
    requests: result.requests,
    'most replicas': result.mostReplicas,
    'drawn in, s': drawn.wallS,
    'played in, s': wallS,
    'CPU, s': cpuS,
    'most memory, MiB': process.resourceUsage().maxRSS / 1024,
  };
}

async function* comparePolicies({
  tasks,
  policies,
  ...plan
}: Readonly<Record<'tasks' | 'policies' | 'shift' | 'traffic' | 'split', string>> &
  Readonly<Record<'rateScale' | 'seeds', number>>): AsyncGenerator<Row> {
  for (const id of tasks.split(',') as FleetTaskId[]) {
    const task = fleet.choose({
      ...{ task_id: id, rate_scale: plan.rateScale },
      ...(plan.shift !== '' && { shift: plan.shift }),
      ...(plan.traffic !== '' && (await trafficOf(plan.traffic, plan.split))),
    });
    const seeds = firstSeeds(plan.split as SeedSplit, plan.seeds);
    const drawn = seeds.map((seed) => fleet.drawRequests(task, seed));
    let first: readonly FleetRun[] | undefined;
    for (const name of policies.split(',')) {
      const { result: runs, cpuS } = await timed(() =>
        seeds.map((seed, i) => playFleet(task, seed, drawn[i], policyOf(name))),
      );
      const mean = (of: (run: FleetRun) => number) => meanOf(runs.map(of));
      first ??= runs;
      const over = runs.map(({ usd }, i) => usd - first![i]!.usd);
      const [low, high] = stratifiedBootstrap([over], meanOf);
      yield {
        ...{ task: id, policy: name },
        return: mean(({ usd }) => usd / task.referenceUsd),
        USD: mean(({ usd }) => usd),
        ...{ 'over the first': meanOf(over), low, high },
        revenue: mean(({ revenueUsd }) => revenueUsd),
        GPUs: mean(({ gpuUsd }) => gpuUsd),
        'in SLO': mean(({ sloAttainment }) => sloAttainment),
        refused: mean(({ refused, requests }) => refused / requests),
        'windows/s of processor time': (seeds.length * task.windows) / cpuS,
      };
    }
  }
}

/** A policy by its name or of a file; behind the colon of a file, the share of the requests to serve inside their objectives. */
function policyOf(name: string): FleetPolicy {
  if (!isPolicyFile(name)) return AGENTS.fleet.createPolicy(name);
  const [path, share] = name.split(':');
  const file = readFileSync(path!);
  if (share === undefined) return AGENTS.fleet.loadPolicy(file).policy;
  const policy = JSON.parse(file.toString());
  const parameters = { ...policy.parameters, sloAttainment: Number(share) };
  return AGENTS.fleet.loadPolicy(Buffer.from(JSON.stringify({ ...policy, parameters }))).policy;
}

/** Reset options of a model of public traffic, or of one half of a trace. */
async function trafficOf(name: string, split: string): Promise<Readonly<Record<string, string>>> {
  if (isTrafficModel(name)) return { traffic: name };
  const { trace } = await readTrace(name);
  const { length } = trace.arrivalMs;
  const [from, to] = split === 'train' ? [0, length >> 1] : [length >> 1, length];
  addServeTrace('half', sliceTrace({ trace }, from, to).trace);
  return { trace: 'half' };
}
