import {
  type FleetTaskId,
  fleet,
  hpaInFlight,
  llmserve,
  type RateRuleParameters,
  regretScore,
  ruleController,
  type SeedReturns,
  type ServeAction,
  ServeEpisode,
} from '@servegym/environments';
import type { JobContext, JobEngine, Json } from '@servegym/jobs';
import { type Plan, playWindows } from '../core/policy.ts';
import { knownTask } from '../learning/learners.ts';
import { MpcPolicy } from '../policies/planner-policies.ts';
import { planClairvoyant } from './plan-clairvoyant.ts';
import { planFleet } from './plan-fleet.ts';

/** The jobs that find what returns are held against. */
export const ANCHOR_JOBS = {
  'reference-returns': referenceReturns,
  'fleet-reference-returns': fleetReferenceReturns,
  'season-anchors': findSeasonAnchors,
} as const;

/** Does the one of `ANCHOR_JOBS` that its input names. */
export function runJob(input: Json, context: JobContext): Json {
  const { kind, ...given } = input as { readonly kind: keyof typeof ANCHOR_JOBS };
  return ANCHOR_JOBS[kind](given as never, context) as unknown as Json;
}

/** One seed of a task of `llmserve` to be played. */
export interface ReferenceInput {
  readonly taskId: string;
  readonly seed: number;
  /** Configurations that planners may change to, the best constant first. */
  readonly configurations: readonly ServeAction[];
  /** The receding-horizon planner plays too. */
  readonly planner: boolean;
  /** The other returns, where they are known. */
  readonly known?: SeedReturns;
}

/** Plays the seed with the default, the best constant and the planners. */
export function referenceReturns(
  { taskId, seed, configurations, planner, known }: ReferenceInput,
  { report }: Pick<JobContext, 'report'>,
): SeedReturns {
  const task = knownTask(llmserve, taskId);
  const requests = llmserve.drawRequests(task, seed);
  const kept = (action: ServeAction) => llmserve.anchors.constantReturn(task, seed, requests, action);
  const returns = known ?? {
    default: kept(task.defaultAction),
    constant: kept(configurations[0]!),
    clairvoyant: planClairvoyant(task, seed, { requests, configurations }).return,
  };
  if (!planner) return { ...returns };
  const policy = new MpcPolicy(configurations);
  policy.reset({ taskId, seed });
  const planned = playWindows(new ServeEpisode(task, seed, { requests }), (step) => {
    report(step.stepIndex / (task.windows + 1));
    return policy.act(step);
  });
  return { ...returns, planner: planned };
}

/** One seed of a task of `fleet` to be played, and the parameters of the rule. */
export interface FleetReferenceInput {
  readonly taskId: FleetTaskId;
  readonly seed: number;
  readonly rule: RateRuleParameters;
}

/** Plays the seed with the autoscaler, the rule and the clairvoyant. */
function fleetReferenceReturns({ taskId, seed, rule }: FleetReferenceInput) {
  const task = fleet.tasks.shipped[taskId];
  const requests = fleet.drawRequests(task, seed);
  const { controlledReturn } = fleet.anchors;
  const rounded = (value: number) => Math.round(value * 1e6) / 1e6;
  return {
    default: rounded(controlledReturn(task, seed, requests, hpaInFlight())),
    rule: rounded(controlledReturn(task, seed, requests, ruleController(rule))),
    clairvoyant: rounded(planFleet(task, seed, { requests, controllers: [ruleController(rule)] }).return),
  };
}

/**
 * Anchors of the episode of a season: the default, the best constant and the planner that knows the traffic. The last
 * action of each is repeated to the end of the episode.
 */
type SeasonAnchors = Readonly<Record<'default' | 'constant' | 'clairvoyant', Plan<ServeAction>>>;

function findSeasonAnchors({ taskId, seed }: Pick<ReferenceInput, 'taskId' | 'seed'>): SeasonAnchors {
  const task = knownTask(llmserve, taskId);
  const requests = llmserve.drawRequests(task, seed);
  const configurations = llmserve.anchors.configurations(task);
  const kept = (action: ServeAction) => ({
    return: llmserve.anchors.constantReturn(task, seed, requests, action),
    actions: [action],
  });
  const plan = planClairvoyant(task, seed, { requests, configurations });
  return {
    default: kept(task.defaultAction),
    constant: kept(configurations[0]!),
    clairvoyant: { return: plan.return, actions: withoutRepeats(plan.actions) },
  };
}

/** The actions up to the last change. */
function withoutRepeats(actions: readonly ServeAction[]): readonly ServeAction[] {
  const last = JSON.stringify(actions.at(-1));
  let length = actions.length;
  while (length > 1 && JSON.stringify(actions[length - 2]) === last) length--;
  return actions.slice(0, length);
}

/** Anchors for the episodes of a season, and the score of a return beside them. */
export const SERVE_SEASON = {
  async anchors(
    jobs: JobEngine,
    episodes: readonly Pick<ReferenceInput, 'taskId' | 'seed'>[],
    onProgress: (share: number) => void,
  ): Promise<SeasonAnchors[]> {
    const kind = 'season-anchors';
    const list = episodes.map((episode) => ({ kind, input: { kind, ...episode } }));
    return (await jobs.run(list, {
      onProgress: ({ share }) => onProgress(share),
    })) as unknown as SeasonAnchors[];
  },
  score(total: number, taskId: string, anchors: unknown): number {
    const { default: standard, constant, clairvoyant } = anchors as SeasonAnchors;
    const returns = {
      ...{ default: standard.return, constant: constant.return, planner: null },
      ...{ clairvoyant: clairvoyant.return, bound: clairvoyant.return, estimated: false },
    };
    return regretScore(total, returns, llmserve.anchors.room(taskId));
  },
};
