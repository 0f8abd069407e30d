import {
  type EpisodeRequests,
  firstSeeds,
  holdMaskedKnobs,
  llmserve,
  type ServeAction,
  ServeEpisode,
  type ServeKnob,
  type ServeTask,
  servingConfig,
} from '@servegym/environments';
import { Cluster, TICKS_PER_S } from '@servegym/simulator';
import { mean } from '@servegym/simulator/statistics';
import {
  always,
  checkExploits,
  checkGains,
  commonExploits,
  type Exploit,
  knobDominance,
  meanGrade,
  ruleLoses,
} from '../core/checks/game-checks.ts';
import {
  checkReaction,
  conservation,
  orderedMeans,
  repeatability,
} from '../core/checks/simulation-checks.ts';
import {
  type CheckEffort,
  type CheckedTask,
  type CheckResult,
  climbKnobs,
  judge,
  keptFigure,
  type OnGroup,
  runChecks,
  type TaskCheck,
  wanderingActions,
} from '../core/checks/task-check.ts';
import { playWindows, turned } from '../core/policy.ts';
import { ruleReturn, tuneConstant, tuneRule } from '../learning/coordinate-search.ts';
import { drawTraffic } from '../learning/learning-environment.ts';
import { createServePolicy, SHIPPED_NAMES } from '../policies/serve-policies.ts';
import { checkedServe, SERVE_CHECKED, type ServeFigure } from './checked-tasks.ts';
import { planClairvoyant } from './plan-clairvoyant.ts';

type Checked = CheckedTask<ServeAction, ServeFigure>;

/**
 * Checks that a task is a sound simulation and a game worth learning: conservation, Little's law, monotonicity, the
 * reaction of the server to its knobs, the worth of tuning and adapting, and ways to cheat. The task is one that this
 * process knows. Deterministic.
 */
export function checkTask(task: ServeTask, effort: CheckEffort, onGroup?: OnGroup): Promise<TaskCheck> {
  const checked = checkedServe(task);
  return runChecks<Configurations>(
    {
      task,
      physics: () => checkPhysics(task, checked, effort),
      tune: () => configurations(task, effort),
      groups: [
        ({ constant }) => checkServeReaction(task, checked, effort, constant),
        (found) => checkGame(task, checked, effort, found),
        ({ constant }) => checkServeExploits(task, checked, constant, effort),
      ],
      bestConstant: ({ constant }) => constant,
    },
    onGroup,
  );
}

/** Queue and batch are sampled this often, s. */
const SAMPLE_S = 0.25;
/** Sampled four times a second, the mean of a queue is off by about this share. */
const LITTLE_TOLERANCE = 0.03;

function checkPhysics(task: ServeTask, checked: Checked, effort: CheckEffort): CheckResult[] {
  const { seeds } = effort;
  const { defaultAction } = task;
  const loaded = checked.scaled(2);
  return [
    conservation(checked, effort),
    drained(task, effort),
    littlesLaw(task, effort),
    repeatability(checked, effort),
    orderedMeans('llmserve', {
      id: 'rate_latency',
      over: [0.5, 1, 2],
      name: (rate) => `p99_ttft_ms at rate x${rate}`,
      figure: (rate) => keptFigure(checked.scaled(rate), seeds, defaultAction, 'ttftMs'),
    }),
    poolAgainstPreemptions(task, effort),
    orderedMeans('llmserve', {
      id: 'cap_token_time',
      over: [4, 32, 256],
      name: (cap) => `p50_itl_ms at cap ${cap}, rate x2`,
      figure: (batch_cap) => {
        const action = { ...defaultAction, batch_cap, speculation_depth: 0, kv_budget_fraction: 1 };
        return keptFigure(loaded, seeds, action, 'p50ItlMs');
      },
    }),
  ];
}

/** After the last arrival the server empties, and every KV block comes back. */
function drained(task: ServeTask, { seeds }: CheckEffort): CheckResult {
  let left = 0;
  let blocks = 0;
  for (const seed of seeds) {
    const actionOf = wanderingActions(checkedServe(task), seed + 1);
    const episode = new ServeEpisode(task, seed);
    while (!episode.done) episode.step(actionOf());
    const { cluster } = episode;
    cluster.configure(servingConfig({ ...task.defaultAction, kv_budget_fraction: 1 }), 0);
    cluster.runUntil((task.windows * task.windowSeconds + 100_000) * TICKS_PER_S);
    left += cluster.waitingCount + cluster.runningCount;
    blocks += cluster.kvBlocksUsed;
  }
  return judge('llmserve', {
    id: 'drained',
    holds: left === 0 && blocks === 0,
    figures: { requests_left: left, blocks_left: blocks },
  });
}

/** L = lambda W: requests in the server, sampled, against arrivals and the times they spent. */
function littlesLaw(task: ServeTask, { seeds }: CheckEffort): CheckResult {
  let worst = 0;
  let shown = { sampled: 0, expected: 0 };
  for (const seed of seeds) {
    const { sampled, expected } = queueLength(task, seed);
    const error = expected === 0 ? 0 : Math.abs(sampled - expected) / Math.max(expected, 1);
    if (error >= worst) {
      worst = error;
      shown = { sampled, expected };
    }
  }
  return judge('llmserve', {
    id: 'littles_law',
    holds: worst <= LITTLE_TOLERANCE,
    figures: { sampled: shown.sampled, rate_times_time: shown.expected, error: worst },
  });
}

function queueLength(task: ServeTask, seed: number): { sampled: number; expected: number } {
  const requests = llmserve.drawRequests(task, seed);
  const episode = new ServeEpisode(task, seed, { requests });
  const cluster = new Cluster(servingConfig(task.defaultAction), {
    profile: episode.profile,
    acceptance: task.acceptance,
    seed,
  });
  const end = task.windows * task.windowSeconds * TICKS_PER_S;
  const waits = new Map<number, number>();
  let samples = 0;
  let inside = 0;
  let timeInside = 0;
  for (let w = 0; w < task.windows; w++) {
    cluster.configure(servingConfig(task.defaultAction), requests.tenantGiB[w]);
    for (let id = requests.windowStarts[w]; id < requests.windowStarts[w + 1]; id++) {
      const arrival = requests.arrivalTicks[id];
      waits.set(id, arrival);
      cluster.submit({
        id,
        arrival,
        input: requests.inputTokens[id],
        output: requests.outputTokens[id],
        priority: requests.classes[id],
      });
    }
    const windowEnd = (w + 1) * task.windowSeconds * TICKS_PER_S;
    for (let at = w * task.windowSeconds * TICKS_PER_S; at < windowEnd; ) {
      at = Math.min(windowEnd, at + SAMPLE_S * TICKS_PER_S);
      cluster.clearLogs();
      cluster.runUntil(at);
      inside += cluster.waitingCount + cluster.runningCount;
      samples++;
      for (const { completions, rejections } of cluster.engines) {
        for (let i = 0; i < completions.count; i++) {
          const id = completions.ids[i];
          timeInside += completions.lastTokens[i] - completions.arrivals[i];
          waits.delete(id);
        }
        for (const id of rejections) waits.delete(id);
      }
    }
  }
  for (const arrival of waits.values()) timeInside += Math.max(0, end - arrival);
  return { sampled: inside / samples, expected: timeInside / end };
}

/** A pool that is far too small preempts less again, as it lets few in: it is not looked at. */
function poolAgainstPreemptions(task: ServeTask, { seeds }: CheckEffort): CheckResult {
  const phases = task.phases.map((phase) => ({ ...phase, tenantGiB: [0, 0] as const }));
  const alone = checkedServe({ ...task, phases }).scaled(2);
  const [whole, half] = [1, 0.5].map((kv_budget_fraction) => {
    const action = { ...task.defaultAction, batch_cap: 512, kv_budget_fraction };
    return keptFigure(alone, seeds, action, 'preemptions');
  }) as [number, number];
  const figures = { 'preemptions at pool 1': whole, 'at 0.5': half };
  return judge('llmserve', { id: 'pool_preemptions', holds: whole <= half, figures });
}

function checkServeReaction(
  task: ServeTask,
  checked: Checked,
  effort: CheckEffort,
  from: ServeAction,
): CheckResult[] {
  const { id, defaultAction, difficulty } = task;
  return checkReaction(checked, effort, {
    from,
    starved: { ...defaultAction, batch_cap: 1, speculation_depth: 0, kv_budget_fraction: 1 },
    figures: [
      ...(['queueDepth', 'activeRequests', 'ttftMs', 'p50ItlMs', 'kvOccupancy', 'throughputTps'] as const),
      ...(['sloCompliance', 'gpuMemoryGb', 'costPer1k', 'interactiveTtftMs'] as const),
    ],
    ...(task.maskedKnobs && { masked: task.maskedKnobs }),
    inert: difficulty === 'easy' ? 'note' : 'fail',
    remedy: `raise the arrivals of \`${id}\`, or lengthen its requests, until the server has work.`,
  });
}

async function checkGame(
  task: ServeTask,
  checked: Checked,
  effort: CheckEffort,
  { constant, phases }: Configurations,
): Promise<CheckResult[]> {
  const { defaultAction } = task;
  const traffic = drawTraffic(llmserve, task, effort.seeds);
  const configurations = [constant, ...phases, defaultAction];
  const planned = (of: ServeTask) =>
    traffic.map(({ seed, requests }) => ({
      seed,
      ...planClairvoyant(of, seed, { requests, configurations }),
    }));
  const rules = { ...dominanceRule(task), operator: 'default' } as const;
  const { returns, results } = checkGains(checked, effort, constant, planned(task), rules);
  /** Of the gain over the best constant. */
  const shareOf = (earned: readonly number[]) =>
    (mean(earned) - returns.constant) / Math.max(returns.clairvoyant - returns.constant, 1e-9);
  const { rule } = await tuneRule(task, constant, { seed: 0, traces: effort.traces });
  return [
    ...results,
    ruleLoses(
      'llmserve',
      returns,
      mean(traffic.map((each) => ruleReturn(task, rule, each))),
      bestShipped(task, traffic),
    ),
    knobsLeftAlone(task, constant, (without) => shareOf(planned(without).map((plan) => plan.return))),
  ];
}

/** The best shipped policy of a task, by mean return; none for a task of one's own. */
function bestShipped(
  task: ServeTask,
  traffic: readonly { readonly seed: number; readonly requests: EpisodeRequests }[],
) {
  const names = llmserve.tasks.isOwn(task.id) ? [] : SHIPPED_NAMES;
  const learned = names.map((name) => {
    const policy = createServePolicy(name);
    const earned = traffic.map(({ seed, requests }) => {
      policy.reset({ taskId: task.id, seed });
      return playWindows(new ServeEpisode(task, seed, { requests }), (step) => policy.act(step));
    });
    return { name, return: mean(earned) };
  });
  return learned.toSorted((a, b) => b.return - a.return).at(0);
}

/** Share of the same gain below which a knob matters: what the planner takes that leaves it alone. */
const MOST_WITHOUT_KNOB = 0.9;
/** Knobs that must matter, as decisions and not only as settings; all that are free where fewer are. */
const LEAST_MATTERING = { easy: 0, medium: 3, hard: 3 } as const;

/** Checks that the planner which knows the traffic gains less when it leaves one knob at the best constant's value. */
function knobsLeftAlone(
  task: ServeTask,
  constant: ServeAction,
  shareOfPlans: (without: ServeTask) => number,
): CheckResult {
  const knobs = llmserve.activeKnobs(task);
  const least = Math.min(LEAST_MATTERING[task.difficulty], knobs.length);
  const shares = knobs.map((knob) => ({
    knob,
    share: shareOfPlans({
      ...task,
      defaultAction: turned(task.defaultAction, knob, constant[knob]),
      maskedKnobs: [...(task.maskedKnobs ?? []), knob],
    }),
  }));
  const mattering = shares.filter(({ share }) => share < MOST_WITHOUT_KNOB);
  return judge('llmserve', {
    ...{ id: 'knobs_left_alone', holds: mattering.length >= least },
    values: { least, difficulty: task.difficulty, most: MOST_WITHOUT_KNOB },
    figures: {
      decisions: mattering.map(({ knob }) => knob).join(', ') || 'none',
      ...Object.fromEntries(shares.map(({ knob, share }) => [`without ${knob}`, share])),
    },
  });
}

/** Knobs that must be live decisions. */
const LEAST_LIVE = { easy: 0, medium: 2, hard: 3 } as const;

/** A value is held for eight windows of twelve. */
function dominanceRule({ difficulty }: ServeTask) {
  return { hold: 8, tail: 4, leastLive: LEAST_LIVE[difficulty] };
}

/** Dominance of the values of each knob in states that a good policy visits. */
export function checkKnobDominance(
  task: ServeTask,
  episodes: readonly { readonly seed: number; readonly actions: readonly ServeAction[] }[],
  states: number,
): CheckResult {
  return knobDominance(checkedServe(task), episodes, states, dominanceRule(task));
}

interface Configurations {
  readonly constant: ServeAction;
  /** The best constants of the phases, each played alone: what an adaptive policy might change between. */
  readonly phases: readonly ServeAction[];
}

/** The configurations that `servegym oracle` recorded, where they still hold; else those of a shorter search. */
async function configurations(task: ServeTask, { traces }: CheckEffort): Promise<Configurations> {
  const recorded = llmserve.anchors.reference(task.id);
  if (recorded?.fingerprint === llmserve.anchors.fingerprint(task)) {
    return { constant: recorded.constant, phases: Object.values(recorded.phases) };
  }
  const options = { taskId: task.id, seed: 0, traces };
  const { action: constant } = await tuneConstant(options);
  if (task.phases.length === 1) return { constant, phases: [] };
  const phases: ServeAction[] = [];
  for (const phase of task.phases) phases.push((await tuneConstant({ ...options, phase })).action);
  return { constant, phases };
}

/** Checks that no exploit scores as much as the default, and INT4 throughout less than the best constant. */
async function checkServeExploits(
  task: ServeTask,
  checked: Checked,
  constant: ServeAction,
  { traces }: CheckEffort,
): Promise<CheckResult[]> {
  const settings = {
    ...{ least: SERVE_CHECKED.least, most: SERVE_CHECKED.most },
    greedy: { batch_cap: 512, kv_budget_fraction: 1 },
    weights: [{ quantization_tier: 'INT8' }, { quantization_tier: 'FP16' }],
    split: [{ prefill_decode_split: true }, { prefill_decode_split: false }],
    hold: (action: ServeAction) => holdMaskedKnobs(task, action),
  } as const;
  /** One knob at an end of its range, the others as in the default. */
  const atEnd = (knob: ServeKnob, end: 'least' | 'most'): Exploit<ServeAction> => {
    const value = SERVE_CHECKED[end][knob];
    return {
      id: `${end}_${knob}`,
      statement: knob === 'priority_routing' ? 'extreme_order' : 'extreme',
      ...{ mayTie: true, values: { knob, value } },
      actions: () => always(checked, settings, { [knob]: value }),
    };
  };
  const exploits = [
    ...commonExploits<ServeAction>(checked, settings),
    ...llmserve.knobs.flatMap((knob) => [atEnd(knob, 'least'), atEnd(knob, 'most')]),
  ];
  const results = await checkExploits(checked, exploits, constant);
  const int4 = bestInt4Constant(task, constant, traces.few);
  if (int4 === undefined) return results;
  const kept = async (action: ServeAction) =>
    (await meanGrade(checked, Array<ServeAction>(task.windows).fill(action))).score;
  const [score, best] = [await kept(int4), await kept(constant)];
  const figures = { score, best_constant_score: best, action: JSON.stringify(int4) };
  return [...results, judge('llmserve', { id: 'int4_tuned', holds: score < best, figures })];
}

/**
 * The configuration with INT4 that earns most on training traffic when it is kept, of a short search: from `good`, each
 * other knob once to its best value. `undefined` where the task masks the precision.
 */
export function bestInt4Constant(
  task: ServeTask,
  good: ServeAction,
  traces: number,
): ServeAction | undefined {
  if (!llmserve.activeKnobs(task).includes('quantization_tier')) return undefined;
  const checked = checkedServe(task);
  const seeds = firstSeeds('train', traces);
  const knobs = checked.knobs.filter(({ knob }) => knob !== 'quantization_tier');
  return climbKnobs(checked, seeds, turned(good, 'quantization_tier', 'INT4'), { knobs, sweeps: 1 }).plan;
}
