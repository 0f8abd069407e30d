import {
  type EpisodeRequests,
  type FleetController,
  type FleetTask,
  type FleetTaskReference,
  firstSeeds,
  fleet,
  hpaInFlight,
  llmserve,
  RateRule,
  type RateRuleParameters,
  type ServeAction,
  ServeEpisode,
  type ServeTask,
  STANDARD_RATE_RULE,
} from '@servegym/environments';
import { playRule, type RuleParameters, type ServeRule, UNTUNED_RULE } from '../policies/rule-policy.ts';
import { trainingTraces } from './learning-environment.ts';

/** Values of a parameter that are told apart on many traces. */
const FINALISTS = 2;

/** Training episodes that every value is tried on, and those that the best are told apart on. */
export interface TuningTraces {
  readonly few: number;
  readonly many: number;
}

interface Climbed<Parameters> {
  readonly parameters: Parameters;
  /** Of an episode, over the traces. */
  readonly meanReturn: number;
}

/** A search over parameters, each from its own list of values. */
export interface CoordinateSearch<Parameters extends object> {
  /** Values that are tried for each parameter. */
  readonly grid: { readonly [Name in keyof Parameters]: readonly Parameters[Name][] };
  readonly traces: TuningTraces;
  /** Return of an episode on the `trace`-th trace. */
  readonly play: (parameters: Parameters, trace: number) => number;
}

/**
 * Coordinate ascent: one parameter at a time is set to its best value, until none changes any more. Every value is tried on
 * a few traces, the best of them on many.
 * @param starts parameters that the search begins with, each by itself; the best end is kept
 */
export function climbCoordinates<Parameters extends object>(
  { grid, traces, play }: CoordinateSearch<Parameters>,
  starts: readonly Parameters[],
): Climbed<Parameters> {
  const names = Object.keys(grid) as (keyof Parameters)[];
  const known = new Map<string, number[]>();
  const returns = (parameters: Parameters, count: number) => {
    const key = names.map((name) => parameters[name]).join(' ');
    const played = known.get(key) ?? [];
    known.set(key, played);
    while (played.length < count) played.push(play(parameters, played.length));
    return played.slice(0, count).reduce((sum, each) => sum + each, 0) / count;
  };
  const climb = (start: Parameters) => {
    let best = start;
    for (let settled = 0, turn = 0; settled < names.length; turn = (turn + 1) % names.length) {
      const name = names[turn]!;
      const finalists = grid[name]
        .map((value) => ({ ...best, [name]: value }))
        .sort((a, b) => returns(b, traces.few) - returns(a, traces.few))
        .slice(0, FINALISTS);
      const [better] = [best, ...finalists].sort((a, b) => returns(b, traces.many) - returns(a, traces.many));
      settled = better === best ? settled + 1 : 1;
      best = better!;
    }
    return { parameters: best, meanReturn: returns(best, traces.many) };
  };
  return starts.map(climb).reduce((a, b) => (b.meanReturn > a.meanReturn ? b : a));
}

/** Values that the search tries for each parameter. */
const GRID: { readonly [Name in keyof RuleParameters]: readonly number[] } = {
  kvTarget: [0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95],
  headroomGb: [0, 1, 2, 4, 6, 9, 12],
  batchCap: [16, 24, 32, 48, 64, 96, 128, 192, 256, 512],
  calmDepth: [0, 1, 2, 3, 4, 5, 6, 8],
  busyDepth: [0, 1, 2, 3, 4, 5, 6, 8],
  busyRate: [2, 3, 4, 6, 8, 10, 12, 16, 20],
};
/** The other batch cap that the search starts from. */
const LARGE_CAP = 256;

export interface TunedRule {
  readonly rule: ServeRule;
  /** Of an episode, over the traces. */
  readonly meanReturn: number;
}

/**
 * Looks for the parameters with which the rule earns most on the training split, from the batch cap of `kept` and from a
 * large one; see `climbCoordinates`.
 * @param kept configuration that the rule starts from, the best constant of the task
 */
export function tuneRule(
  task: ServeTask,
  kept: ServeAction,
  { seed, traces }: { readonly seed: number; readonly traces: TuningTraces },
): TunedRule {
  const drawn = trainingTraces(seed, traces.many).map((trace) => ({
    ...{ seed: trace, requests: llmserve.drawRequests(task, trace) },
  }));
  const { batch_cap, speculation_depth: depth } = kept;
  const { parameters, meanReturn } = climbCoordinates(
    {
      ...{ grid: GRID, traces },
      play: (each, trace) => ruleReturn(task, { kept, parameters: each }, drawn[trace]!),
    },
    [batch_cap, LARGE_CAP].map((batchCap) => ({
      ...{ ...UNTUNED_RULE, batchCap, calmDepth: depth, busyDepth: depth },
    })),
  );
  return { rule: { kept, parameters }, meanReturn };
}

/** Return of an episode that the rule plays. */
export function ruleReturn(
  task: ServeTask,
  rule: ServeRule,
  { seed, requests }: { readonly seed: number; readonly requests: EpisodeRequests },
): number {
  const act = playRule(task, rule);
  const episode = new ServeEpisode(task, seed, { requests });
  while (!episode.done) {
    const { action: previousAction, window: stepIndex } = episode;
    episode.step(act({ observation: episode.observation(), previousAction, stepIndex }));
  }
  return episode.totals.reward;
}

/** Values that the search tries for each parameter of the rule. */
const RULE_GRID: { readonly [Name in keyof RateRuleParameters]: readonly number[] } = {
  tokensPerReplica: [
    5000, 7000, 9000, 11_000, 13_000, 15_000, 18_000, 21_000, 24_000, 28_000, 33_000, 39_000,
  ],
  outputWeight: [2, 4, 6, 9, 14, 20],
  memoryWindows: [1, 2, 4, 6, 10, 20],
  admissionSeconds: [0, 1, 2, 5, 10, 20, 600],
  prefixWeight: [0, 0.5, 1, 2, 3, 5],
  tokenBudget: [512, 1024, 2048, 4096, 8192],
};

/** Requests in flight a replica that the search tries as the target of `hpa`. */
const IN_FLIGHT_GRID = { target: [5, 8, 10, 13, 16, 20, 25, 30, 35, 40, 50, 60] };

/** Settings of the classic controllers of a task. */
export type TunedControllers = Pick<FleetTaskReference, 'rule' | 'inFlightTarget' | 'constantReplicas'>;

/** The settings that earn most on the first training seeds of a task. */
export function tuneFleet(task: FleetTask, traces: TuningTraces): TunedControllers {
  const drawn = firstSeeds('train', traces.many).map((seed) => ({
    ...{ seed, requests: fleet.drawRequests(task, seed) },
  }));
  const earned = (controller: FleetController, trace: number) => {
    const { seed, requests } = drawn[trace]!;
    return fleet.anchors.controlledReturn(task, seed, requests, controller);
  };
  const rule = climbCoordinates(
    { grid: RULE_GRID, traces, play: (parameters, trace) => earned(new RateRule(parameters), trace) },
    [STANDARD_RATE_RULE],
  );
  const hpa = climbCoordinates(
    { grid: IN_FLIGHT_GRID, traces, play: ({ target }, trace) => earned(hpaInFlight(target), trace) },
    [{ target: 40 }],
  );
  const constant = climbCoordinates<{ replicas: number }>(
    {
      grid: { replicas: Array.from({ length: task.maxReplicas }, (_, i) => i + 1) },
      ...{ traces, play: ({ replicas }, trace) => earned(constantController(replicas), trace) },
    },
    [{ replicas: task.defaultAction.replicas }],
  );
  return {
    rule: rule.parameters,
    inFlightTarget: hpa.parameters.target,
    constantReplicas: constant.parameters.replicas,
  };
}

function constantController(replicas: number): FleetController {
  return { name: 'static', reset() {}, act: ({ previousAction }) => ({ ...previousAction, replicas }) };
}
