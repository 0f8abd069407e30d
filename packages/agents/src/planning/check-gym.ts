import {
  type GymAction,
  type GymTask,
  type GymWorld,
  inferencegym,
  SEED_SPLITS,
} from '@servegym/environments';
import { mean } from '@servegym/simulator/statistics';
import { type CheckEffort, type CheckResult, CheckRun, type TaskCheck } from '../core/checks/check-result.ts';
import {
  type CheckedTask,
  climbKnobs,
  keptFigure,
  keptReturn,
  turned,
  valuesOf,
} from '../core/checks/checked-task.ts';
import {
  always,
  checkExploits,
  commonExploits,
  EXPLOIT_SEEDS,
  type Exploit,
} from '../core/checks/exploits.ts';
import { chanceLoses, knobDominance, roomToAdapt, tuningPays } from '../core/checks/game.ts';
import { conservation, orderedMeans, repeatability, trajectory } from '../core/checks/physics.ts';
import { checkReaction } from '../core/checks/reaction.ts';
import { checkedGym, type GymFigure } from './checked-gym.ts';
import { planSchedule } from './plan-schedule.ts';

type Checked = CheckedTask<GymAction, GymFigure>;

/**
 * Checks that a task of `inferencegym` is a sound simulation and a game worth learning on a table: conservation,
 * monotonicity, the reaction of the server to its knobs, the worth of tuning and adapting, and ways to cheat.
 * Deterministic.
 */
export async function checkGymTask(
  world: GymWorld,
  task: GymTask,
  effort: CheckEffort,
  onGroup?: (results: readonly CheckResult[]) => void,
): Promise<TaskCheck> {
  const checked = checkedGym(world, task);
  const run = new CheckRun(onGroup);
  await run.add(checkPhysics(task, checked, effort));
  const constant = bestConstant(world, task, checked, effort);
  await run.add(checkGymReaction(checked, effort, constant));
  await run.add(checkGame(world, task, checked, effort, constant));
  await run.add(await checkGymExploits(task, checked, constant));
  await run.add([await checkLessService(world, task, checked, EXPLOIT_SEEDS[0])]);
  return {
    taskId: task.id,
    difficulty: task.difficulty,
    passed: run.passed,
    results: run.results,
    bestConstant: { ...constant },
  };
}

/** The configuration that earns most on training traffic when it is kept, one knob at a time, from two starts. */
function bestConstant(world: GymWorld, task: GymTask, checked: Checked, { traces }: CheckEffort): GymAction {
  const seeds = Array.from({ length: traces.many }, (_, i) => SEED_SPLITS.train.first + i);
  const [one, other] = [inferencegym.defaultAction, world.calibration(task).best].map((start) =>
    climbKnobs(checked, seeds, start),
  );
  return other.return > one.return ? other.action : one.action;
}

const FIND_IN_TABLE = 'The table says so: `servegym table check` finds the cells that are out of order.';

function checkPhysics(task: GymTask, checked: Checked, effort: CheckEffort): CheckResult[] {
  const over = (changes: readonly Partial<GymAction>[], figure: GymFigure, of = checked) =>
    changes.map((change) =>
      keptFigure(of, effort.seeds, { ...inferencegym.defaultAction, ...change }, figure),
    );
  const rates = [0.5, 1, 2];
  const batches = [8, 32, 128];
  const pools = [0.2, 0.5, 0.8];
  const smaller = pools.toReversed();
  const advice = FIND_IN_TABLE;
  return [
    conservation(checked, effort),
    repeatability(checked, effort),
    masksHold(task, checked, effort),
    orderedMeans({
      id: 'rate_latency',
      title: 'more arrivals never make the first token come sooner',
      values: rates.flatMap((rate) => over([{}], 'ttftMs', checked.scaled(rate))),
      names: rates.map((rate) => `ttft_ms at rate x${rate}`),
      advice,
    }),
    orderedMeans({
      id: 'batch_throughput',
      title: 'a larger batch never serves fewer tokens, at a quarter of the KV pool',
      values: over(
        batches.map((batch_size) => ({ batch_size, kv_budget: 0.25 })),
        'tokensPerSecond',
      ),
      names: batches.map((batch) => `tokens_per_s at batch ${batch}`),
      advice,
    }),
    orderedMeans({
      id: 'pool_preemptions',
      title: 'a smaller KV pool never preempts less',
      values: over(
        smaller.map((kv_budget) => ({ batch_size: 128, kv_budget })),
        'preempted',
      ),
      names: smaller.map((pool) => `preemptions per request at pool ${pool}`),
      advice,
    }),
    orderedMeans({
      id: 'pool_memory',
      title: 'a larger KV pool never takes less memory',
      values: over(
        pools.map((kv_budget) => ({ kv_budget })),
        'memoryGb',
      ),
      names: pools.map((pool) => `gpu_memory_gb at pool ${pool}`),
      advice,
    }),
  ];
}

function masksHold(task: GymTask, checked: Checked, { seeds: [seed = 0] }: CheckEffort): CheckResult {
  const masked = inferencegym.knobs.filter((knob) => !task.activeKnobs.includes(knob));
  const other: GymAction = {
    ...inferencegym.defaultAction,
    spec_length: 4,
    prefill_disagg: true,
    quant_tier: 2,
  };
  const moved = {
    ...inferencegym.defaultAction,
    ...Object.fromEntries(masked.map((knob) => [knob, other[knob]])),
  };
  const play = (action: GymAction) => trajectory(checked, seed, () => action);
  const holds = play(moved) === play(inferencegym.defaultAction);
  return {
    id: 'masks_hold',
    group: 'physics',
    title: 'knobs that are masked change nothing',
    outcome: holds ? 'pass' : 'fail',
    figures: { masked: masked.join(', ') || 'none' },
  };
}

function checkGymReaction(checked: Checked, effort: CheckEffort, good: GymAction): CheckResult[] {
  return checkReaction(checked, effort, {
    from: good,
    starved: { ...good, batch_size: 1 },
    figures: [
      ...(['queueDepth', 'ttftMs', 'tpotMs', 'kvOccupancy', 'violationRate', 'memoryGb'] as const),
      ...(['tokensPerSecond', 'cost'] as const),
    ],
    names: {
      ...{ queue: 'queueDepth', ttft: 'ttftMs', kv: 'kvOccupancy' },
      ...{ violations: 'violationRate', outOfMemory: 'outOfMemory' },
    },
    inert: 'fail',
    advice: {
      react: `the table's server is far too fast or far too slow for the arrivals of task ${checked.id}.`,
      act: 'The table has the same figures along that axis, or one value only: measure more of them.',
      starve: 'The table answers for a batch of one as for a large one: measure small batches under load.',
      sane: 'The default takes the whole pool beside a batch of 32. Set `memory_limit_gb` of the table to what the GPU has.',
    },
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
  { seeds, states, sweeps }: CheckEffort,
  constant: GymAction,
): CheckResult[] {
  const schedules = seeds.map((seed) => ({
    seed,
    ...planSchedule(world, task, seed, { start: constant, sweeps }),
  }));
  const returns = {
    default: keptReturn(checked, seeds, inferencegym.defaultAction),
    constant: keptReturn(checked, seeds, constant),
    clairvoyant: mean(schedules.map((schedule) => schedule.return)),
  };
  const operator = {
    ...{ title: 'a tuned configuration', figure: 'best_constant_return' },
    return: returns.constant,
  };
  return [
    tuningPays(returns, inferencegym.episodeSteps, constant),
    chanceLoses(checked, seeds, operator),
    roomToAdapt(
      returns,
      task.difficulty,
      'note',
      'A configuration that never changes earns nearly all that a schedule for known traffic earns: in this task the search for it is what is learned. Tasks of llmserve are made for adapting.',
    ),
    knobDominance(checked, schedules, states, {
      ...{ hold: 10, tail: 10, leastLive: LEAST_LIVE[task.difficulty] },
      otherwise: {
        outcome: 'note',
        advice: 'Wherever a good policy goes, the same values are best: they are found once, and kept.',
      },
    }),
  ];
}

const LEAST: GymAction = {
  kv_budget: 0.1,
  spec_length: 0,
  batch_size: 1,
  prefill_disagg: false,
  quant_tier: 0,
};
const MOST: GymAction = {
  kv_budget: 1,
  spec_length: 8,
  batch_size: 512,
  prefill_disagg: true,
  quant_tier: 2,
};

function checkGymExploits(task: GymTask, checked: Checked, good: GymAction): Promise<CheckResult[]> {
  const settings = {
    ...{ least: LEAST, most: MOST, greedy: { batch_size: 512, kv_budget: 1 } },
    weights: [{ quant_tier: 1 }, { quant_tier: 0 }],
    split: [{ prefill_disagg: true }, { prefill_disagg: false }],
    hold: (action: GymAction): GymAction => ({
      ...inferencegym.defaultAction,
      ...Object.fromEntries(task.activeKnobs.map((knob) => [knob, action[knob]])),
    }),
  } as const;
  const exploits: Exploit<GymAction>[] = [
    ...commonExploits<GymAction>(checked, settings),
    {
      id: 'one_sequence',
      title: 'one sequence at a time',
      actions: () => always(checked, settings, { batch_size: 1 }),
    },
    {
      id: 'int4_always',
      title: 'INT4 throughout',
      mayPay:
        'Nothing here charges for quality. Measure the tiers that the table derives from FP16, if it does.',
      actions: () => always(checked, settings, { quant_tier: 2 }),
    },
  ];
  return checkExploits(
    checked,
    exploits,
    good,
    'look for cells of the table that promise what no server does.',
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
  const standard = await played(inferencegym.defaultAction, inferencegym.defaultAction);
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
  const holds = most.score < standard.score;
  return {
    id: 'less_service',
    group: 'exploits',
    title:
      'scores below the default: what serves fewer requests and violates more objectives, kept or flapping',
    outcome: holds ? 'pass' : 'fail',
    figures: {
      tried,
      serve_less: serveLess,
      score: most.score,
      default_score: standard.score,
      by: most.by,
    },
    ...(!holds && {
      advice: 'Bad service pays: look at which part of the score rises with it.',
    }),
  };
}

function* pairsOf(task: Checked): Generator<readonly [GymAction, GymAction]> {
  const { knobs } = task;
  const isActive = (knob: string) => knobs.some((each) => each.knob === knob);
  const bases = (isActive('kv_budget') ? POOLS : [inferencegym.defaultAction.kv_budget]).flatMap(
    (kv_budget) =>
      (isActive('quant_tier') ? [0, 1] : [0]).map(
        (quant_tier): GymAction => ({
          ...inferencegym.defaultAction,
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
