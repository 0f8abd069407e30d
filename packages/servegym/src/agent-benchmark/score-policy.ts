import {
  createPolicy,
  evaluatedServe,
  evaluatePolicy,
  loadTrainedPolicy,
  policyUnderScenario,
  underScenario,
} from '@servegym/agents';
import type { Shift, TaskId } from '@servegym/environments';

/** Episodes to play and grade. */
export interface ScoringRun {
  readonly taskId: TaskId;
  /** `null` for the traffic and the server as they are. */
  readonly shift: Shift | null;
  readonly seeds: readonly number[];
}

/** Scores of a policy, of the catalogue or of a file, in the order of the seeds. */
export async function scorePolicy(
  policyOf: string | Uint8Array,
  { taskId, shift, seeds }: ScoringRun,
): Promise<number[]> {
  const policy = typeof policyOf === 'string' ? createPolicy(policyOf) : loadTrainedPolicy(policyOf).policy;
  const scenario = shift === null ? {} : { shift };
  const { tasks } = await evaluatePolicy(
    underScenario(evaluatedServe, scenario),
    policyUnderScenario(policy, scenario),
    { taskIds: [taskId], seeds },
  );
  return tasks[0]!.episodes.map(({ score }) => score);
}
