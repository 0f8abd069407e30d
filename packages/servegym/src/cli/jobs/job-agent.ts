import { createPolicy, listPolicies, loadTrainedPolicy, type ServePolicy } from '@servegym/agents';
import type { JobContext, JobEngine } from '@servegym/jobs';
import { readInputBytes } from '../arguments/read-input-file.ts';

/** A policy of `llmserve` as jobs name it: by its name, or by the shared bytes of one that was trained. */
export type JobAgent = { readonly name: string } | { readonly trained: string };

/** Makes a policy known to jobs: one of a name, or in a file that `servegym train` wrote. */
export async function shareAgent(jobs: JobEngine, nameOrFile: string): Promise<JobAgent> {
  if (listPolicies().some(({ name }) => name === nameOrFile)) return { name: nameOrFile };
  return { trained: await jobs.share(await readInputBytes(nameOrFile)) };
}

/** What a job with this agent has to be given. */
export function sharedOfAgent(agent: JobAgent): string[] {
  return 'trained' in agent ? [agent.trained] : [];
}

/** The policy, in a job. */
export function policyOfAgent(agent: JobAgent, context: JobContext): ServePolicy {
  return 'name' in agent ? createPolicy(agent.name) : loadTrainedPolicy(context.shared(agent.trained)).policy;
}
