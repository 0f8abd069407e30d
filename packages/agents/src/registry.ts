import {
  type BenchmarkAction,
  benchmark,
  type EnvironmentId,
  type FleetAction,
  type FleetObservation,
  type FleetTask,
  fleet,
  type GymAction,
  type GymObservation,
  type GymTask,
  inferencegym,
  llmserve,
  type ServeAction,
  type ServeObservation,
  type ServeTask,
} from '@servegym/environments';
import type { JobEngine } from '@servegym/jobs';
import type { RandomStream } from '@servegym/simulator';
import type { CheckEffort, CheckResult, TaskCheck } from './core/checks/task-check.ts';
import {
  type PlayableEnvironment,
  type PlayInputs,
  playable,
  readFleetWindow,
  readGymStep,
  readServeWindow,
} from './core/playable.ts';
import type { Policy } from './core/policy.ts';
import { tuneConstant, tuneFleet, tuneRule } from './learning/coordinate-search.ts';
import { decodePolicy, GYM_LEARNER } from './learning/learners.ts';
import type { Algorithm } from './learning/training-run.ts';
import { SERVE_SEASON } from './planning/anchor-jobs.ts';
import { checkFleetTask } from './planning/check-fleet.ts';
import { checkGymTask } from './planning/check-gym.ts';
import { checkKnobDominance, checkTask } from './planning/check-serve.ts';
import { planClairvoyant } from './planning/plan-clairvoyant.ts';
import {
  catalogue,
  constantPolicy,
  createFrom,
  type PolicyDescription,
  randomPolicy,
} from './policies/catalogue.ts';
import { createFleetPolicy, loadFleetPolicy } from './policies/fleet-policies.ts';
import policies from './policies/policies.json' with { type: 'json' };
import { TUNED_RULES_URL } from './policies/rule-policies.ts';
import { createServePolicy, loadServePolicy, SHIPPED_NAMES } from './policies/serve-policies.ts';

/** The best of 27 settings on seeds 1 and 2 of each task. */
const GYM_SERVING: GymAction = {
  ...{ batch_size: 256, kv_budget: 0.7, spec_length: 2, quant_tier: 1, prefill_disagg: true },
};

const GYM_POLICIES = catalogue<GymAction, GymObservation>(policies.inferencegym, {
  random: () => randomPolicy<GymAction>(drawAction),
  default: () => constantPolicy('default', () => inferencegym.defaultAction),
  baseline: () => constantPolicy('baseline', () => inferencegym.defaultAction),
  serving: () =>
    constantPolicy('serving', ({ taskId, resetOptions }) => {
      const { activeKnobs } = inferencegym.choose({ ...resetOptions, task_id: taskId });
      const chosen = activeKnobs.map((knob) => [knob, GYM_SERVING[knob]]);
      return { ...inferencegym.defaultAction, ...Object.fromEntries(chosen) };
    }),
});

/** Every knob uniformly from its values. */
function drawAction(random: RandomStream): GymAction {
  const depths = inferencegym.bins.spec_length;
  return {
    kv_budget: 0.1 + 0.9 * random.uniform(),
    spec_length: depths[random.integer(0, depths.length - 1)],
    batch_size: random.integer(1, 512),
    prefill_disagg: random.integer(0, 1) === 1,
    quant_tier: random.integer(0, 2) as GymAction['quant_tier'],
  };
}

/** The agents of an environment: who plays it, who learns it, who checks its tasks. */
export interface EnvironmentAgents<
  Action extends object = object,
  Observation extends object = object,
  Task = { readonly id: string | number },
> {
  /** The environment as policies play it. */
  playable(inputs?: PlayInputs): PlayableEnvironment<Action, Observation>;
  /** The policies by name. */
  readonly policies: readonly PolicyDescription[];
  /** Those that simulate before they act, for much longer than the environment takes. */
  readonly planners: readonly string[];
  /** Those that were trained beforehand, which play only the tasks that come with the environment. */
  readonly shipped: readonly string[];
  /** The policy that plays where none is named. */
  readonly baseline: string;
  /** Those that a server plays as baselines, `baseline` first; none where episodes are not graded. */
  readonly baselines: readonly string[];
  /** Ranges of the scores of `baseline` by task, where nothing is of the user's own. Absent where none are told. */
  readonly expectedRanges?: Readonly<Record<string, readonly [number, number]>>;
  /** A fresh policy. @throws EnvironmentError `UNKNOWN_POLICY` */
  createPolicy(name: string): Policy<Action, Observation>;
  /** The policy in a file that training wrote, and its task. Absent where nothing is learned. @throws EnvironmentError */
  loadPolicy?(file: Uint8Array): {
    readonly policy: Policy<Action, Observation>;
    readonly taskId: string | number;
  };
  /** The ways to learn a policy. */
  readonly algorithms: readonly Algorithm[];
  /** Windows after which PPO gains little more, where more than elsewhere. */
  readonly ppoSteps?: number;
  /** True where tasks in files and traffic of one's own are learned too. */
  readonly learnsVariants?: boolean;
  /** The ways to learn one policy for any server. */
  readonly learnsAny?: readonly Algorithm[];
  /** Anchors of the episodes of a season, where they are not judged by their grader. */
  readonly season?: {
    anchors(
      jobs: JobEngine,
      episodes: readonly { readonly taskId: string; readonly seed: number }[],
      onProgress: (share: number) => void,
    ): Promise<readonly object[]>;
    score(total: number, taskId: string, anchors: unknown): number;
  };
  /** Checks that a task is a sound simulation and a game worth learning. */
  check?(
    task: Task,
    effort: CheckEffort,
    onGroup?: (results: readonly CheckResult[]) => void,
    inputs?: PlayInputs,
  ): Promise<TaskCheck>;
}

/** What the agents of one environment have alone. */
type Extras = Readonly<Record<string, unknown>>;

const BENCHMARK_POLICIES = catalogue<BenchmarkAction, object>(policies.benchmark, {
  default: () => constantPolicy('default', () => benchmark.initialAction()),
});

/** The agents of each environment: an entry beside that of `ENVIRONMENTS`. */
export const AGENTS = {
  llmserve: {
    playable: (inputs?: PlayInputs) => playable(llmserve, inputs, readServeWindow),
    policies: policies.llmserve,
    planners: ['mpc', 'mpc-unshifted', 'oracle'],
    shipped: SHIPPED_NAMES,
    baseline: 'heuristic',
    baselines: ['heuristic', 'random', 'default'],
    createPolicy: createServePolicy,
    loadPolicy: loadServePolicy,
    algorithms: ['ppo', 'rollout', 'static'],
    ppoSteps: 480_000,
    learnsVariants: true,
    learnsAny: ['ppo', 'rollout'],
    check: checkTask,
    season: SERVE_SEASON,
    knobDominance: checkKnobDominance,
    plan: planClairvoyant,
    tune: { constant: tuneConstant, rule: tuneRule },
    tunedRules: TUNED_RULES_URL,
  } satisfies EnvironmentAgents<ServeAction, ServeObservation, ServeTask> & Extras,
  fleet: {
    playable: (inputs?: PlayInputs) => playable(fleet, inputs, readFleetWindow),
    policies: policies.fleet,
    planners: [],
    shipped: [],
    baseline: 'hpa',
    baselines: ['hpa', 'rule', 'static'],
    createPolicy: createFleetPolicy,
    loadPolicy: loadFleetPolicy,
    algorithms: ['ppo', 'cem'],
    learnsAny: ['cem'],
    check: checkFleetTask,
    tune: tuneFleet,
  } satisfies EnvironmentAgents<FleetAction, FleetObservation, FleetTask> & Extras,
  inferencegym: {
    playable: (inputs?: PlayInputs) => playable(inferencegym, inputs, readGymStep),
    policies: policies.inferencegym,
    planners: [],
    shipped: [],
    baseline: 'baseline',
    baselines: ['baseline', 'default', 'random'],
    // Those of InferenceGym.
    expectedRanges: { 1: [0.3, 0.4], 2: [0.22, 0.32], 3: [0.18, 0.28] },
    createPolicy: (name) => createFrom(GYM_POLICIES, name),
    loadPolicy: (file) => decodePolicy<GymAction, GymObservation, GymTask>(GYM_LEARNER, file),
    algorithms: ['ppo'],
    async check(task, effort, onGroup, { table } = {}) {
      return checkGymTask(table?.world ?? (await inferencegym.shippedWorld()), task, effort, onGroup);
    },
  } satisfies EnvironmentAgents<GymAction, GymObservation, GymTask>,
  benchmark: {
    playable: (inputs?: PlayInputs) => playable(benchmark, inputs),
    policies: policies.benchmark,
    planners: [],
    shipped: [],
    baseline: 'default',
    baselines: [],
    createPolicy: (name) => createFrom(BENCHMARK_POLICIES, name),
    algorithms: [],
  } satisfies EnvironmentAgents<BenchmarkAction>,
} as const satisfies Readonly<Record<EnvironmentId, unknown>>;
