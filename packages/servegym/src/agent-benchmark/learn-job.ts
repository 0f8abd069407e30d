import type { JobContext, Json } from '@servegym/agents/jobs';
import { type LearningRun, learnPolicy } from './learn-policy.ts';

/** A policy to be learned, and the name under which the clone of its teacher was shared; `null` where it has none. */
export type LearningInput = LearningRun & { readonly clone: string | null };

/** The job `learn-policy`: learns a policy; answers its file in base64. */
export async function runJob(input: Json, context: JobContext): Promise<Json> {
  const { clone, ...run } = input as unknown as LearningInput;
  const file = await learnPolicy(run, clone === null ? undefined : context.shared(clone));
  return Buffer.from(file).toString('base64');
}
