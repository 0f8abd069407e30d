import type { JobKinds } from '@servegym/agents/jobs';

/** The kinds of jobs that commands submit, and the module that does each. */
export const JOB_KINDS: JobKinds = {
  'tune-measure': new URL('../tune/measure-candidates.ts', import.meta.url).href,
};
