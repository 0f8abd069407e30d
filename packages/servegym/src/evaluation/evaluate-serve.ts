import {
  type Evaluation,
  evaluatedServe,
  evaluatePolicy,
  policyUnderScenario,
  type ServePolicy,
  underScenario,
} from '@servegym/agents';
import { SEED_SPLITS, type SeedSplit, type ServeScenario, SHIFTS } from '@servegym/environments';
import { showEpisode } from '../progress/episode-progress.ts';

/** In the place of a split: the test seeds under each shift. */
export const SHIFTED = 'shifted';

/** Where the seeds of an evaluation come from. */
export type EvaluationSplit = SeedSplit | typeof SHIFTED;
export const EVALUATION_SPLITS = [...Object.keys(SEED_SPLITS), SHIFTED] as const;

/** What to play. */
export interface ServeEvaluationPlan {
  readonly taskIds: readonly string[];
  readonly split: EvaluationSplit;
  /** For each task. */
  readonly episodes: number;
  /** Traffic, trace and shift. */
  readonly scenario: ServeScenario;
}

/** Plays a policy on `llmserve`. */
export async function evaluateServe(
  policy: ServePolicy,
  { taskIds, split, episodes, scenario }: ServeEvaluationPlan,
): Promise<Evaluation> {
  const { first } = SEED_SPLITS[split === SHIFTED ? 'test' : split];
  return evaluatePolicy(underScenario(evaluatedServe, scenario), policyUnderScenario(policy, scenario), {
    taskIds,
    seeds: Array.from({ length: episodes }, (_, i) => first + i),
    onEpisode: showEpisode,
  });
}

/** Plays a policy on `llmserve` under each shift. */
export async function evaluateShifted(
  policy: ServePolicy,
  plan: ServeEvaluationPlan,
): Promise<ReadonlyMap<string, Evaluation>> {
  const shifted = new Map<string, Evaluation>();
  for (const shift of SHIFTS) {
    shifted.set(shift, await evaluateServe(policy, { ...plan, scenario: { ...plan.scenario, shift } }));
  }
  return shifted;
}
