import { defineCommand } from './command-table.ts';
import { codeVersion, importQueue, JOB_KINDS, threads } from './jobs.ts';

/** `servegym worker`: does the jobs that other commands put into a queue. */
export const workerCommand = () =>
  defineCommand({
    name: 'worker',
    description: 'do the jobs of commands that were started with --queue, on this machine',
    options: {
      queue: { value: '<url>', help: 'redis://host:6379', required: true },
      threads,
      quiet: { help: 'say nothing of single jobs' },
      json: { help: 'say it in JSON lines' },
    },
    after: `Start as many as you like, on as many machines. A job whose worker dies or hangs goes to another one. Ctrl-C or SIGTERM
finishes the jobs that run and ends; a second one ends at once. A worker takes jobs only of its own version.`,
    async action({ queue, threads, quiet, json }) {
      const version = codeVersion();
      const say = (event: string, details: Record<string, unknown>, line: string) => {
        console.log(json ? JSON.stringify({ event, ...details }) : line);
      };
      let finished = 0;
      const { QueueWorker } = await importQueue();
      const worker = await QueueWorker.start({
        url: queue,
        version,
        kinds: JOB_KINDS,
        threads,
        onFinished({ kind, wallMs, failed }) {
          finished += 1;
          if (quiet) return;
          const event = failed ? 'failed' : 'finished';
          const wall_s = wallMs / 1000;
          say(event, { kind, wall_s }, `${event.padEnd(8)} ${kind}  ${wall_s.toFixed(2)} s`);
        },
        onNotice: (notice) => console.error(`note: ${notice}`),
      });
      const { address } = worker;
      say(
        'ready',
        { queue: address, version, threads },
        `waiting for jobs at ${address}, ${threads} at once, version ${version}`,
      );
      await askedToStop((force) => worker.close(force));
      say('stopped', { jobs: finished }, `stopped after ${finished.toLocaleString('en-US')} jobs`);
    },
  });

/** Resolves when `close` has: it is called for the first signal, and with `force` for the second. */
function askedToStop(close: (force: boolean) => Promise<void>): Promise<void> {
  return new Promise((resolve, reject) => {
    let asked = 0;
    const stop = () => {
      asked += 1;
      if (asked === 1) close(false).then(resolve, reject);
      else process.exit(1);
    };
    process.on('SIGINT', stop);
    process.on('SIGTERM', stop);
  });
}
