import type { JobContext, Json } from '@servegym/jobs';
import { policyReturns, type Traffic } from './policy-returns.ts';

/** Who plays: a name of the catalogue, or the name under which a file was shared. */
export type ReturnsInput = Traffic & { readonly policy: string; readonly isShared: boolean };

/** The job `policy-returns`: plays episodes; answers their returns. */
export async function runJob(input: Json, context: JobContext): Promise<Json> {
  const { policy, isShared, ...traffic } = input as unknown as ReturnsInput;
  return policyReturns(isShared ? context.shared(policy) : policy, traffic);
}
