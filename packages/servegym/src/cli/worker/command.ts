import { Command } from 'commander';
import { importQueue, JOB_KINDS, threadsOption } from '../jobs/open-jobs.ts';
import { codeVersion } from '../jobs/source-hash.ts';

interface WorkerOptions {
  readonly queue: string;
  readonly threads: number;
  readonly quiet: boolean;
  readonly json: boolean;
}

/** `servegym worker`: does the jobs that other commands put into a queue. */
export function workerCommand(): Command {
  return new Command('worker')
    .description('do the jobs of commands that were started with --queue, on this machine')
    .requiredOption('--queue <url>', 'redis://host:6379')
    .addOption(threadsOption())
    .option('--quiet', 'say nothing of single jobs', false)
    .option('--json', 'say it in JSON lines', false)
    .addHelpText(
      'after',
      `
Start as many as you like, on as many machines. A job whose worker dies or hangs goes to another one. Ctrl-C or SIGTERM
finishes the jobs that run and ends; a second one ends at once. A worker takes jobs only of its own version.`,
    )
    .action(work);
}

async function work({ queue, threads, quiet, json }: WorkerOptions): Promise<void> {
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
      const wall_s = wallMs / 1000;
      say(
        failed ? 'failed' : 'finished',
        { kind, wall_s },
        `${failed ? 'failed  ' : 'finished'} ${kind}  ${wall_s.toFixed(2)} s`,
      );
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
}

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
