export {
  type Job,
  type JobContext,
  type JobEngine,
  JobError,
  type JobFailure,
  type JobKinds,
  type Json,
} from './job.ts';
export { LocalJobs } from './local-jobs.ts';
