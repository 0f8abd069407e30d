export type {
  Job,
  JobContext,
  JobEngine,
  JobKinds,
  JobModule,
  Json,
  RunOptions,
  RunProgress,
} from './job.ts';
export { JobFailedError, type JobFailure, JobQueueError, type JobQueueErrorCode } from './job-errors.ts';
export { LocalJobs, type LocalJobsOptions } from './local-jobs.ts';
