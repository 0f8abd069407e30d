import { AGENT_JOB_KINDS } from '@servegym/agents';
import type { JobKinds } from '@servegym/jobs';
import { TUNE_JOB_KINDS } from '@servegym/tuning';
import { FIDELITY_JOB_KINDS } from '@servegym/tuning/fidelity';

/** The kinds of jobs that commands submit, and the module that does each. */
export const JOB_KINDS: JobKinds = {
  ...AGENT_JOB_KINDS,
  ...TUNE_JOB_KINDS,
  ...FIDELITY_JOB_KINDS,
};
