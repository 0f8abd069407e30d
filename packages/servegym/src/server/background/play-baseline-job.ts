import type { JobContext, Json } from '@servegym/jobs';
import { playBaseline } from '../baseline-routes.ts';
import { openServed, type ServedEnvironment } from './served-environment.ts';

export interface PlayBaselineInput {
  readonly environment: ServedEnvironment;
  readonly agent: string;
  readonly taskId: string | number;
  readonly seed: number;
}

/** Plays a baseline agent, and grades it. */
export async function runJob(input: Json, context: JobContext): Promise<Json> {
  const { environment, agent, taskId, seed } = input as unknown as PlayBaselineInput;
  const { definition, policies } = await openServed(environment, { task_id: taskId }, context);
  const initialAction = policies.initialAction({ task_id: taskId, seed });
  const episode = { taskId, seed, initialAction };
  return (await playBaseline(definition, policies.create(agent), episode)) as unknown as Json;
}
