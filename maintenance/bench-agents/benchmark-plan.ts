import { AGENTS, type ShippedName } from '@servegym/agents';
import { llmserve, type Shift, type TaskId } from '@servegym/environments';

/** Agents, tasks and sizes of the benchmark. */
export interface BenchmarkPlan {
  /** Names of the catalogue; those that are learned are trained anew. */
  readonly agents: readonly string[];
  readonly taskIds: readonly TaskId[];
  /** Held-out traces for each task. */
  readonly episodes: number;
  /** And under each shift; 0 leaves the shifts out. */
  readonly shiftedEpisodes: number;
  /** The same for the agents that plan, which are slow; 0 leaves them out. */
  readonly planningEpisodes: number;
  readonly planningShiftedEpisodes: number;
  /** Times that a learned policy is trained. */
  readonly trainingSeeds: number;
  /** Windows that each of them learns from. */
  readonly steps: number;
  /** Teacher of `distilled`, its episodes, and the windows of PPO after them. */
  readonly teacher: string;
  readonly lessons: number;
  readonly fineTuningSteps: number;
}

/** `test`, or the name of a shift of it. */
export type BenchmarkSplit = 'test' | Shift;

/** Agents that try futures on a simulator before they act. */
export const PLANNERS: ReadonlySet<string> = new Set(['mpc', 'mpc-unshifted', 'mpc-online', 'oracle']);

export function isLearned(agent: string): agent is ShippedName {
  return Object.hasOwn(AGENTS.llmserve.shippedPolicies.formats, agent);
}

export function plannedSplits({ shiftedEpisodes }: BenchmarkPlan): readonly BenchmarkSplit[] {
  return shiftedEpisodes > 0 ? ['test', ...llmserve.shifts] : ['test'];
}

/** Traces that an agent plays for each task of a split. */
export function plannedEpisodes(plan: BenchmarkPlan, agent: string, split: BenchmarkSplit): number {
  if (PLANNERS.has(agent)) return split === 'test' ? plan.planningEpisodes : plan.planningShiftedEpisodes;
  return split === 'test' ? plan.episodes : plan.shiftedEpisodes;
}
