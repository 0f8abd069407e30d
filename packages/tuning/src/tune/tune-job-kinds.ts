import type { JobKinds } from '@servegym/jobs';

/** Job kinds that `tuneProfile` submits, with their modules. */
export const TUNE_JOB_KINDS: JobKinds = {
  'tune-measure': new URL('measure-candidates.ts', import.meta.url).href,
};
