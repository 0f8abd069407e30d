import { QueueWorker } from './queue-worker.ts';

/** A worker of a queue in a process of its own: `node queue-worker-process.fixture.ts <url> <version> <lock ms>`. */
const [url, version, lockMs] = process.argv.slice(2);
await QueueWorker.start({
  url: url!,
  version: version!,
  kinds: { simulation: new URL('simulation-job.fixture.ts', import.meta.url).href },
  threads: 1,
  lockMs: Number(lockMs),
});
console.log('ready');
