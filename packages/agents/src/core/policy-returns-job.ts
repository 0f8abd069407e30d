import type { Shift, TaskId } from '@servegym/environments';
import type { JobContext, Json } from '@servegym/jobs';
import { playEpisode } from './play-episode.ts';
import { playableServe, policyUnderScenario } from './playable-serve.ts';
import { findSharedPolicy, type SharedPolicy } from './shared-inputs.ts';

/** Episodes of a task of ours, by the seeds of their traffic. */
export interface SeededTraffic {
  readonly taskId: TaskId;
  /** `null` for the traffic and the server as they are. */
  readonly shift: Shift | null;
  readonly seeds: readonly number[];
}

/** Episodes to play, and the policy that plays them. */
export interface PolicyReturnsInput extends SeededTraffic {
  readonly policy: SharedPolicy;
}

/** The job `policy-returns`: plays episodes; answers their returns, in the order of the seeds. */
export async function runJob(input: Json, context: JobContext): Promise<Json> {
  const { policy: shared, taskId, shift, seeds } = input as unknown as PolicyReturnsInput;
  const scenario = shift === null ? {} : { shift };
  const policy = policyUnderScenario(findSharedPolicy(shared, context), scenario);
  const environment = playableServe(scenario);
  const instance = environment.create();
  const initialAction = environment.initialAction(taskId);
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
