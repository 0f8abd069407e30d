import {
  GYM_DEFAULT_ACTION,
  type GymAction,
  GymEpisode,
  type GymTask,
  type GymWorld,
  KNOBS,
} from '@servegym/environments';
import type { CheckEffort, CheckResult } from '../../core/checks/check-result.ts';
import { orderedMeans } from '../../core/checks/ordered-means.ts';
import { meanOfGym, type PlayedGym, playGym, scaleGymArrivals, wanderingGymActions } from './play-gym.ts';

const FIND_IN_TABLE = 'The table says so: `servegym table check` finds the cells that are out of order.';

/** Whether the server that a table describes is sound, whatever is done. */
export function checkGymPhysics(world: GymWorld, task: GymTask, effort: CheckEffort): CheckResult[] {
  const { seeds } = effort;
  const over = (changes: readonly Partial<GymAction>[], figure: keyof PlayedGym, of: GymTask = task) =>
    changes.map((change) => {
      const action = { ...GYM_DEFAULT_ACTION, ...change };
      return meanOfGym(seeds, (seed) => playGym(world, of, seed, () => action), figure);
    });
  const rates = [0.5, 1, 2];
  const batches = [8, 32, 128];
  const pools = [0.2, 0.5, 0.8];
  return [
    conservation(world, task, effort),
    repeatability(world, task, effort),
    masksHold(world, task, effort),
    orderedMeans({
      id: 'rate_latency',
      title: 'more arrivals never make the first token come sooner',
      values: rates.flatMap((rate) => over([{}], 'ttftMs', scaleGymArrivals(task, rate))),
      names: rates.map((rate) => `ttft_ms at rate x${rate}`),
      advice: FIND_IN_TABLE,
    }),
    orderedMeans({
      id: 'batch_throughput',
      title: 'a larger batch never serves fewer tokens, at a quarter of the KV pool',
      values: over(
        batches.map((batch_size) => ({ batch_size, kv_budget: 0.25 })),
        'tokensPerSecond',
      ),
      names: batches.map((batch) => `tokens_per_s at batch ${batch}`),
      advice: FIND_IN_TABLE,
    }),
    orderedMeans({
      id: 'pool_preemptions',
      title: 'a smaller KV pool never preempts less',
      values: over(
        pools.toReversed().map((kv_budget) => ({ batch_size: 128, kv_budget })),
        'preempted',
      ),
      names: pools.toReversed().map((pool) => `preemptions per request at pool ${pool}`),
      advice: FIND_IN_TABLE,
    }),
    orderedMeans({
      id: 'pool_memory',
      title: 'a larger KV pool never takes less memory',
      values: over(
        pools.map((kv_budget) => ({ kv_budget })),
        'memoryGb',
      ),
      names: pools.map((pool) => `gpu_memory_gb at pool ${pool}`),
      advice: FIND_IN_TABLE,
    }),
  ];
}

function conservation(world: GymWorld, task: GymTask, { seeds }: CheckEffort): CheckResult {
  let steps = 0;
  let mismatches = 0;
  for (const seed of seeds) {
    for (const actionOf of [() => GYM_DEFAULT_ACTION, wanderingGymActions(task, seed, GYM_DEFAULT_ACTION)]) {
      const episode = new GymEpisode(task, seed, world);
      while (!episode.done) {
        episode.step(actionOf(episode.timestep));
        steps++;
        const { arrived, served, failed, rejected } = episode.totals;
        if (arrived !== served + failed + rejected + episode.queueDepth) mismatches++;
      }
    }
  }
  return {
    id: 'conservation',
    group: 'physics',
    title: 'arrived = served + failed + turned away + waiting, after every step',
    outcome: mismatches === 0 ? 'pass' : 'fail',
    figures: { steps, mismatches },
  };
}

function trajectory(
  world: GymWorld,
  task: GymTask,
  seed: number,
  actionOf: (step: number) => GymAction,
): string {
  const episode = new GymEpisode(task, seed, world);
  const lines: string[] = [];
  while (!episode.done) {
    lines.push(JSON.stringify([episode.step(actionOf(episode.timestep)), episode.observation()]));
  }
  return lines.join();
}

function repeatability(world: GymWorld, task: GymTask, { seeds }: CheckEffort): CheckResult {
  const [seed] = seeds as readonly [number];
  const play = (on: number) =>
    trajectory(world, task, on, wanderingGymActions(task, seed, GYM_DEFAULT_ACTION));
  const first = play(seed);
  const repeated = play(seed) === first;
  const another = play(seed + 1) !== first;
  return {
    id: 'repeatability',
    group: 'physics',
    title: 'the same seed and actions give the same bits; another seed does not',
    outcome: repeated && another ? 'pass' : 'fail',
    figures: { repeated: `${repeated}`, another_seed_differs: `${another}` },
  };
}

function masksHold(world: GymWorld, task: GymTask, { seeds }: CheckEffort): CheckResult {
  const [seed] = seeds as readonly [number];
  const masked = KNOBS.filter((knob) => !task.activeKnobs.includes(knob));
  const other: GymAction = { ...GYM_DEFAULT_ACTION, spec_length: 4, prefill_disagg: true, quant_tier: 2 };
  const turned = { ...GYM_DEFAULT_ACTION, ...Object.fromEntries(masked.map((knob) => [knob, other[knob]])) };
  const play = (action: GymAction) => trajectory(world, task, seed, () => action);
  const holds = play(turned) === play(GYM_DEFAULT_ACTION);
  return {
    id: 'masks_hold',
    group: 'physics',
    title: 'knobs that are masked change nothing',
    outcome: holds ? 'pass' : 'fail',
    figures: { masked: masked.join(', ') || 'none' },
  };
}
