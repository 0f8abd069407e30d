export type {
  Job,
  JobContext,
  JobEngine,
  JobKinds,
  Json,
  RunOptions,
  RunProgress,
} from './job.ts';
export { JobFailedError, type JobFailure } from './job-errors.ts';
export { LocalJobs, type LocalJobsOptions } from './local-jobs.ts';
