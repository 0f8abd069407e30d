// `@servegym/jobs/queue`: jobs through Redis. Needs the packages `bullmq` and `ioredis`.
export { QueueWorker } from './queue-worker.ts';
export { QueuedJobs } from './queued-jobs.ts';
