import type { JobContext, Json } from '@servegym/agents/jobs';
import { type ScoringRun, scorePolicy } from './score-policy.ts';

/** Who plays: a name of the catalogue, or the name under which a file was shared. */
export type ScoringInput = ScoringRun & { readonly policy: string; readonly isShared: boolean };

/** Plays and grades episodes; answers their scores. */
export async function runJob(input: Json, context: JobContext): Promise<Json> {
  const { policy, isShared, ...run } = input as unknown as ScoringInput;
  return scorePolicy(isShared ? context.shared(policy) : policy, run);
}
