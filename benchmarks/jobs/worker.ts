// A worker of a queue with one thread: `node benchmarks/jobs/worker.ts <url>`. Says `ready` when it is.
import { QueueWorker } from '@servegym/jobs/queue';
import { KINDS, VERSION } from './kinds.ts';

await QueueWorker.start({ url: process.argv[2], version: VERSION, kinds: KINDS, threads: 1 });
console.log('ready');
