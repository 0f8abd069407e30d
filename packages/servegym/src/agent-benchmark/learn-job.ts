import type { Json } from '@servegym/agents/jobs';
import { type LearningRun, learnPolicy } from './learn-policy.ts';

/** Learns a policy; answers its file in base64. */
export async function runJob(input: Json): Promise<Json> {
  return Buffer.from(await learnPolicy(input as unknown as LearningRun)).toString('base64');
}
