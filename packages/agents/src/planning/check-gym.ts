import {
  firstSeeds,
  type GymAction,
  GymEpisode,
  type GymTask,
  type GymWorld,
  inferencegym,
} from '@servegym/environments';
import { mean } from '@servegym/simulator/statistics';
import {
  always,
  checkExploits,
  checkGains,
  commonExploits,
  EXPLOIT_SEEDS,
  ruleLoses,
} from '../core/checks/game-checks.ts';
import {
  checkReaction,
  conservation,
  orderedMeans,
  repeatability,
  trajectory,
} from '../core/checks/simulation-checks.ts';
import {
  type CheckEffort,
  type CheckedTask,
  type CheckResult,
  climb,
  climbKnobs,
  episodeReturn,
  judge,
  keptFigure,
  type OnGroup,
  runChecks,
  type TaskCheck,
  turnsOf,
  valuesOf,
} from '../core/checks/task-check.ts';
import { bestOf, type Plan, turned } from '../core/policy.ts';
import { checkedGym, GYM_CHECKED, type GymFigure } from './checked-tasks.ts';

type Checked = CheckedTask<GymAction, GymFigure>;
const { defaultAction } = inferencegym;

/**
 * Checks that a task of `inferencegym` is a sound simulation and a game worth learning on a table: conservation,
 * monotonicity, the reaction of the server to its knobs, the worth of tuning and adapting, and ways to cheat.
 * Deterministic.
 */
export function checkGymTask(
  world: GymWorld,
  task: GymTask,
  effort: CheckEffort,
  onGroup?: OnGroup,
): Promise<TaskCheck> {
  const checked = checkedGym(world, task);
  return runChecks<GymAction>(
    {
      task,
      physics: () => checkPhysics(task, checked, effort),
      tune: () => bestConstant(world, task, checked, effort),
      groups: [
        (constant) => checkGymReaction(checked, effort, constant),
        (constant) => checkGame(world, task, checked, effort, constant),
        async (constant) => [
          ...(await checkGymExploits(task, checked, constant)),
          await checkLessService(world, task, checked, EXPLOIT_SEEDS[0]),
        ],
      ],
      bestConstant: (constant) => ({ ...constant }),
    },
    onGroup,
  );
}

/** The configuration that earns most on training traffic when it is kept, one knob at a time, from two starts. */
function bestConstant(world: GymWorld, task: GymTask, checked: Checked, { traces }: CheckEffort): GymAction {
  const seeds = firstSeeds('train', traces.many);
  const climbed = [defaultAction, world.calibration(task).best].map((start) =>
    climbKnobs(checked, seeds, start),
  );
  return bestOf(climbed).plan;
}

function checkPhysics(task: GymTask, checked: Checked, effort: CheckEffort): CheckResult[] {
  const kept = (change: Partial<GymAction>, figure: GymFigure, of = checked) =>
    keptFigure(of, effort.seeds, { ...defaultAction, ...change }, figure);
  const pools = [0.2, 0.5, 0.8];
  return [
    conservation(checked, effort),
    repeatability(checked, effort),
    masksHold(task, checked, effort),
    orderedMeans('inferencegym', {
      id: 'rate_latency',
      over: [0.5, 1, 2],
      name: (rate) => `ttft_ms at rate x${rate}`,
      figure: (rate) => kept({}, 'ttftMs', checked.scaled(rate)),
    }),
    orderedMeans('inferencegym', {
      id: 'batch_throughput',
      over: [8, 32, 128],
      name: (batch) => `tokens_per_s at batch ${batch}`,
      figure: (batch_size) => kept({ batch_size, kv_budget: 0.25 }, 'tokensPerSecond'),
    }),
    orderedMeans('inferencegym', {
      id: 'pool_preemptions',
      over: pools.toReversed(),
      name: (pool) => `preemptions per request at pool ${pool}`,
      figure: (kv_budget) => kept({ batch_size: 128, kv_budget }, 'preempted'),
    }),
    orderedMeans('inferencegym', {
      id: 'pool_memory',
      over: pools,
      name: (pool) => `gpu_memory_gb at pool ${pool}`,
      figure: (kv_budget) => kept({ kv_budget }, 'memoryGb'),
    }),
  ];
}

function masksHold(task: GymTask, checked: Checked, { seeds: [seed = 0] }: CheckEffort): CheckResult {
  const masked = inferencegym.knobs.filter((knob) => !task.activeKnobs.includes(knob));
  const other: GymAction = { ...defaultAction, spec_length: 4, prefill_disagg: true, quant_tier: 2 };
  const moved = { ...defaultAction, ...Object.fromEntries(masked.map((knob) => [knob, other[knob]])) };
  const play = (action: GymAction) => trajectory(checked, seed, () => action);
  return judge('inferencegym', {
    id: 'masks_hold',
    holds: play(moved) === play(defaultAction),
    figures: { masked: masked.join(', ') || 'none' },
  });
}

function checkGymReaction(checked: Checked, effort: CheckEffort, good: GymAction): CheckResult[] {
  return checkReaction(checked, effort, {
    from: good,
    starved: { ...good, batch_size: 1 },
    figures: [
      ...(['queueDepth', 'ttftMs', 'tpotMs', 'kvOccupancy', 'violationRate', 'memoryGb'] as const),
      ...(['tokensPerSecond', 'cost'] as const),
    ],
    inert: 'fail',
    remedy: `the table's server is far too fast or far too slow for the arrivals of task ${checked.id}.`,
  });
}

/** Knobs that must be live decisions. */
const LEAST_LIVE = { easy: 0, medium: 1, hard: 2 } as const;

/**
 * Checks that there is something to find, and something to adapt to, beyond the best constant. Arrivals, objectives and
 * weights are those that InferenceGym lays down, so that little room is told and is no failure.
 */
function checkGame(
  world: GymWorld,
  task: GymTask,
  checked: Checked,
  effort: CheckEffort,
  constant: GymAction,
): readonly CheckResult[] {
  const schedules = effort.seeds.map((seed) => ({
    seed,
    ...planSchedule(world, task, seed, { start: constant, sweeps: effort.sweeps }),
  }));
  const { returns, results } = checkGains(checked, effort, constant, schedules, {
    ...{ hold: 10, tail: 10, leastLive: LEAST_LIVE[task.difficulty] },
    ...{ otherwise: 'note', operator: 'constant' },
  });
  const { plan: rule } = tuneRule(world, task, checked, constant, effort);
  const ruled = mean(effort.seeds.map((seed) => ruleReturn(world, task, seed, rule)));
  return [...results, ruleLoses('inferencegym', returns, ruled)];
}

/** A hand rule: two configurations, of which one is for rushes. */
interface GymRule {
  readonly calm: GymAction;
  readonly rush: GymAction;
  /** Load at which a rush begins: requests that wait or come in a second. It ends at `RUSH_ENDS` of it. */
  readonly load: number;
}

/** Loads that are tried, and the share of one below which it is calm again: so that neither flaps. */
const LOADS = [16, 32, 64, 128, 256, 512];
const RUSH_ENDS = 0.7;

/** Return of an episode that the rule plays. */
function ruleReturn(world: GymWorld, task: GymTask, seed: number, { calm, rush, load }: GymRule): number {
  const episode = new GymEpisode(task, seed, world);
  let isRush = false;
  while (!episode.done) {
    const { queue_depth, arrival_rate } = episode.observation();
    isRush = queue_depth + arrival_rate >= (isRush ? RUSH_ENDS * load : load);
    episode.step(isRush ? rush : calm);
  }
  return episode.totals.reward;
}

/** The rule that earns most on training traffic: one knob of one configuration at a time, from the best constant. */
function tuneRule(
  world: GymWorld,
  task: GymTask,
  checked: Checked,
  constant: GymAction,
  { traces, sweeps }: CheckEffort,
) {
  const seeds = firstSeeds('train', traces.many);
  const changes = [
    ...LOADS.map((load) => (rule: GymRule) => ({ ...rule, load })),
    ...turnsOf(checked.knobs).flatMap(({ knob, value }) => [
      (rule: GymRule) => ({ ...rule, rush: turned(rule.rush, knob, value) }),
      (rule: GymRule) => ({ ...rule, calm: turned(rule.calm, knob, value) }),
    ]),
  ];
  const worth = (rule: GymRule) => mean(seeds.map((seed) => ruleReturn(world, task, seed, rule)));
  // Where both are the same, no load is better than another.
  const tuned = LOADS.map((load) =>
    climb({ calm: constant, rush: constant, load }, changes, worth, { sweeps, least: LEAST_GAIN }),
  );
  return bestOf(tuned);
}

function checkGymExploits(task: GymTask, checked: Checked, good: GymAction): Promise<CheckResult[]> {
  const settings = {
    ...{ least: GYM_CHECKED.least, most: GYM_CHECKED.most, greedy: { batch_size: 512, kv_budget: 1 } },
    weights: [{ quant_tier: 1 }, { quant_tier: 0 }],
    split: [{ prefill_disagg: true }, { prefill_disagg: false }],
    hold: (action: GymAction): GymAction => ({
      ...defaultAction,
      ...Object.fromEntries(task.activeKnobs.map((knob) => [knob, action[knob]])),
    }),
  } as const;
  return checkExploits(
    checked,
    [
      ...commonExploits<GymAction>(checked, settings),
      { id: 'one_sequence', actions: () => always(checked, settings, { batch_size: 1 }) },
      { id: 'int4_always', actions: () => always(checked, settings, { quant_tier: 2 }) },
    ],
    good,
  );
}

/** KV budgets beside which the other knobs are turned: what a smaller pool saves must not pay for bad service. */
const POOLS = [1, 0.75, 0.5, 0.15];
/** Of the values of a knob with more than six, every other one. */
const FEW_VALUES = 6;

/**
 * Checks that nothing scores as much as the default that serves fewer requests and violates more objectives, on the same
 * traffic and as the server's grader sees it. Tried are the values of each knob, kept, and each two of them in turn at
 * every step, beside several pools and, where it is free, INT8.
 */
async function checkLessService(
  world: GymWorld,
  task: GymTask,
  checked: Checked,
  seed: number,
): Promise<CheckResult> {
  const played = async (even: GymAction, odd: GymAction) => {
    const actions = Array.from({ length: inferencegym.episodeSteps }, (_, step) =>
      step % 2 === 0 ? even : odd,
    );
    const { score, breakdown } = await inferencegym.grade(
      { reset: { task_id: task.id, seed }, actions },
      { table: { world } },
    );
    return {
      score,
      served: Number(breakdown.served_share),
      violated: Number(breakdown.mean_slo_violation_rate),
    };
  };
  const standard = await played(defaultAction, defaultAction);
  let tried = 0;
  let serveLess = 0;
  let most = { score: 0, by: 'none' };
  for (const [even, odd] of pairsOf(checked)) {
    const { score, served, violated } = await played(even, odd);
    tried++;
    if (served >= standard.served || violated <= standard.violated) continue;
    serveLess++;
    if (score > most.score) most = { score, by: `${shown(task, even)} / ${shown(task, odd)}` };
  }
  return judge('inferencegym', {
    id: 'less_service',
    holds: most.score < standard.score,
    figures: {
      tried,
      serve_less: serveLess,
      score: most.score,
      default_score: standard.score,
      by: most.by,
    },
  });
}

function* pairsOf(task: Checked): Generator<readonly [GymAction, GymAction]> {
  const { knobs } = task;
  const isActive = (knob: string) => knobs.some((each) => each.knob === knob);
  const bases = (isActive('kv_budget') ? POOLS : [defaultAction.kv_budget]).flatMap((kv_budget) =>
    (isActive('quant_tier') ? [0, 1] : [0]).map(
      (quant_tier): GymAction => ({
        ...defaultAction,
        kv_budget,
        quant_tier: quant_tier as 0 | 1,
      }),
    ),
  );
  for (const base of bases) {
    for (const each of knobs) {
      const values = valuesOf(each).filter((_, i, { length }) => length <= FEW_VALUES || i % 2 === 0);
      for (const [i, value] of values.entries()) {
        for (const other of values.slice(i)) {
          yield [turned(base, each.knob, value), turned(base, each.knob, other)];
        }
      }
    }
  }
}

function shown({ activeKnobs }: GymTask, action: GymAction): string {
  return activeKnobs.map((knob) => `${knob} ${action[knob]}`).join(', ');
}

/** Steps that a configuration is kept for at most, before the schedule may choose another. */
const LONGEST_STRETCH = 10;
/** Gains below this are none. */
const LEAST_GAIN = 1e-9;

/**
 * A good schedule for traffic that is known in advance. Bursts and calm are cut into stretches of at most ten steps;
 * one knob at a time is set to the value that earns most over the whole episode, first in all bursts or all calm at
 * once and then in each stretch, until nothing is gained any more. Never worse than keeping `start`.
 */
export function planSchedule(
  world: GymWorld,
  task: GymTask,
  seed: number,
  { start, sweeps }: { readonly start: GymAction; readonly sweeps: number },
): Plan<GymAction> {
  const checked = checkedGym(world, task);
  const stretches = stretchesOf(world, task, seed);
  const all = [...stretches.keys()];
  const parts = [true, false].map((isBurst) => all.filter((i) => stretches[i].isBurst === isBurst));
  const groups = [...parts, ...all.map((i) => [i])].filter((group) => group.length > 0);
  const stretchAt = stretches.flatMap(({ steps }, i) => Array<number>(steps).fill(i));
  const worth = (plan: readonly GymAction[]) => episodeReturn(checked, seed, (step) => plan[stretchAt[step]]);
  const turns = turnsOf(checked.knobs);
  const changes = groups.flatMap((group) =>
    turns.map(
      ({ knob, value }) =>
        (plan: readonly GymAction[]) =>
          plan.map((action, i) => (group.includes(i) ? turned(action, knob, value) : action)),
    ),
  );
  const kept: readonly GymAction[] = stretches.map(() => start);
  const { plan, return: most } = climb(kept, changes, worth, { sweeps, least: LEAST_GAIN });
  return { actions: stretchAt.map((i) => plan[i]), return: most };
}

interface Stretch {
  readonly isBurst: boolean;
  steps: number;
}

function stretchesOf(world: GymWorld, task: GymTask, seed: number): Stretch[] {
  const { workload } = new GymEpisode(task, seed, world);
  const stretches: Stretch[] = [];
  for (let step = 0; step < inferencegym.episodeSteps; step++) {
    const isBurst = workload.isBurst(step);
    const last = stretches.at(-1);
    if (last === undefined || last.isBurst !== isBurst || last.steps === LONGEST_STRETCH) {
      stretches.push({ isBurst, steps: 1 });
    } else {
      last.steps++;
    }
  }
  return stretches;
}
