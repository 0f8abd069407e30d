// `@servegym/jobs/queue`: jobs through Redis. Needs the packages `bullmq` and `ioredis`.
export { QueueWorker, type QueueWorkerSettings } from './queue-worker.ts';
export { QueuedJobs, type QueuedJobsOptions } from './queued-jobs.ts';
