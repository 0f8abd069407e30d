import { AGENT_JOB_KINDS } from '@servegym/agents';
import type { JobKinds } from '@servegym/jobs';
import { TUNE_JOB_KINDS } from '@servegym/tuning';

/** The kinds of jobs that commands submit, and the module that does each. */
export const JOB_KINDS: JobKinds = {
  ...AGENT_JOB_KINDS,
  ...TUNE_JOB_KINDS,
  fidelity: new URL('../fidelity/fidelity-job.ts', import.meta.url).href,
};
