import {
  holdMaskedKnobs,
  llmserve,
  type ServeAction,
  type ServeObservation,
  type ServeTask,
} from '@servegym/environments';
import { findProfile } from '@servegym/profiles';
import { kvMemoryGiB } from '@servegym/simulator';
import type { Policy, PolicyStep } from '../core/policy.ts';
import { EpisodePolicy } from './catalogue.ts';
import tunedRules from './tuned-rules.json' with { type: 'json' };

const GIB = 2 ** 30;

/** The six parameters of the rule. */
export interface RuleParameters {
  readonly batchCap: number;
  /** Draft tokens below `busyRate`, and from there on. */
  readonly calmDepth: number;
  readonly busyDepth: number;
  /** Arrivals a second. */
  readonly busyRate: number;
  /** Share of the KV pool that is to be in use. */
  readonly kvTarget: number;
  /** Memory of each GPU that is left free for tenants, GB. */
  readonly headroomGb: number;
}

/** A rule as it is played: what it keeps, and its parameters. */
export interface ServeRule {
  /** Precision, division and order stay as they are here; the other knobs begin so. */
  readonly kept: ServeAction;
  readonly parameters: RuleParameters;
}

/** File of the tuned parameters; `benchmarks/run.ts tuned-rules` writes it. */
export const TUNED_RULES_URL = new URL('./tuned-rules.json', import.meta.url);

/** For a task that nothing was tuned for. */
export const UNTUNED_RULE: RuleParameters = {
  batchCap: 128,
  calmDepth: 4,
  busyDepth: 2,
  busyRate: 8,
  kvTarget: 0.8,
  headroomGb: 2,
};

const TUNED: Readonly<Record<string, RuleParameters>> = tunedRules;

/**
 * The rule that learned policies have to beat: drafts by the arrival rate, a KV pool by what is used of it and by what
 * tenants leave, one batch cap, everything else as in the best constant. It changes no knob that costs a reload or a drain.
 * @param rule by default the one tuned on the training split of the task
 */
export function rulePolicy(rule?: ServeRule): Policy<ServeAction, ServeObservation> {
  return new EpisodePolicy('rule', ({ taskId, resetOptions }) => {
    const task = llmserve.choose({ ...resetOptions, task_id: taskId });
    return playRule(task, rule ?? tunedRule(task));
  });
}

function tunedRule(task: ServeTask): ServeRule {
  const [kept] = llmserve.anchors.configurations(task);
  const parameters = Object.hasOwn(TUNED, task.id) ? TUNED[task.id] : UNTUNED_RULE;
  return { kept: kept!, parameters: parameters! };
}

/** The rule on the server of a task. */
export function playRule(
  task: ServeTask,
  { kept, parameters }: ServeRule,
): (
  step: Pick<PolicyStep<ServeAction, ServeObservation>, 'observation' | 'previousAction' | 'stepIndex'>,
) => ServeAction {
  const { batchCap, calmDepth, busyDepth, busyRate, kvTarget, headroomGb } = parameters;
  const profile = findProfile(task.profile);
  const gpuGb = (profile.gpu.memoryGiB * GIB) / 1e9;
  const poolGb = (kvMemoryGiB(profile, kept.quantization_tier, true) * GIB) / 1e9;
  return ({ observation, previousAction, stepIndex }) => {
    if (stepIndex === 0) return holdMaskedKnobs(task, kept);
    const budget = previousAction.kv_budget_fraction;
    const wanted = (observation.kv_cache_occupancy * budget) / kvTarget;
    const most = budget + (gpuGb - headroomGb - observation.gpu_memory_used_gb) / poolGb;
    return holdMaskedKnobs(task, {
      ...kept,
      batch_cap: batchCap,
      speculation_depth: observation.request_arrival_rate >= busyRate ? busyDepth : calmDepth,
      // In whole hundredths: steps do not drift.
      kv_budget_fraction: Math.min(1, Math.max(0.1, Math.round(100 * Math.min(wanted, most)) / 100)),
    });
  };
}
