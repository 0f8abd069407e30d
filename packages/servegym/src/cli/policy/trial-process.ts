// The process in which a policy and the simulation run. `evaluate-policy.ts` starts it without permissions.
import type { PolicyFunctions } from '@servegym/simulator';
import { type ReferenceName, STANDARD, startReference } from './references.ts';
import { type SandboxedPolicy, sandboxPolicy } from './sandbox.ts';
import { runScaledTrial, runTrial, type Trial, type TrialResult } from './trial.ts';

/** A trace to be served, by the JavaScript of a policy or by one of ours. */
export type TrialJob = { readonly trial: Trial } & (
  | { readonly source: string }
  | { readonly reference: ReferenceName }
);

/** What came of it: a result, or a sentence why the policy could not begin. */
export type TrialAnswer =
  | {
      readonly result: TrialResult;
      readonly calls: number;
      readonly policyMs: number;
      readonly cpuMs: number;
    }
  | { readonly refusal: string };

/** Processor time of this process. */
function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

const run = (trial: Trial, functions: PolicyFunctions<unknown>) =>
  (trial.task === undefined ? runTrial : runScaledTrial)(trial, functions, STANDARD as PolicyFunctions);

async function serve(job: TrialJob): Promise<TrialAnswer> {
  const { trial } = job;
  const begin = cpuMs();
  if ('reference' in job) {
    const functions = await startReference(job.reference);
    const result = await run(trial, functions);
    return { result, calls: 0, policyMs: 0, cpuMs: cpuMs() - begin };
  }
  let policy: SandboxedPolicy;
  try {
    policy = await sandboxPolicy(job.source, trial.seed);
  } catch (error) {
    return { refusal: (error as Error).message };
  }
  const result = await run(trial, policy.functions);
  return { result, calls: policy.calls(), policyMs: policy.spentMs(), cpuMs: cpuMs() - begin };
}

// A promise that a policy rejects is nobody's.
process.on('unhandledRejection', () => {});
process.on('message', async (job: TrialJob) => process.send!(await serve(job)));
process.send!('ready');
