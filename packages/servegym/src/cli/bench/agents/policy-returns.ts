import {
  createPolicy,
  evaluatedServe,
  loadTrainedPolicy,
  playEpisode,
  policyUnderScenario,
  underScenario,
} from '@servegym/agents';
import type { Shift, TaskId } from '@servegym/environments';

/** Traffic to play. */
export interface Traffic {
  readonly taskId: TaskId;
  /** `null` for the traffic and the server as they are. */
  readonly shift: Shift | null;
  readonly seeds: readonly number[];
}

/** Returns of a policy, of the catalogue or of a file, in the order of the seeds. */
export async function policyReturns(
  policyOf: string | Uint8Array,
  { taskId, shift, seeds }: Traffic,
): Promise<number[]> {
  const scenario = shift === null ? {} : { shift };
  const policy = policyUnderScenario(
    typeof policyOf === 'string' ? createPolicy(policyOf) : loadTrainedPolicy(policyOf).policy,
    scenario,
  );
  const instance = underScenario(evaluatedServe, scenario).create();
  const initialAction = evaluatedServe.initialAction(taskId);
  const returns: number[] = [];
  try {
    for (const seed of seeds) {
      returns.push((await playEpisode(instance, policy, { taskId, seed, initialAction })).return);
    }
  } finally {
    await instance.close?.();
  }
  return returns;
}
