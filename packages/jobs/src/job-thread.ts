import { setPriority } from 'node:os';
import type { MessagePort } from 'node:worker_threads';
import { failureOf, type JobFailure, type JobModule, type Json } from './job.ts';

/** Job for a thread. */
export interface ThreadTask {
  readonly module: string;
  readonly input: Json;
  readonly shared: ReadonlyMap<string, Uint8Array>;
  /** Port for the progress. */
  readonly progress: MessagePort;
  /** As of `LocalJobsOptions`. */
  readonly niceness: number;
}

export type ThreadAnswer =
  | { readonly ok: true; readonly result: Json }
  | { readonly ok: false; readonly failure: JobFailure };

export default async function runOnThread(task: ThreadTask): Promise<ThreadAnswer> {
  const { module, input, shared, progress, niceness } = task;
  try {
    // Elsewhere than on Linux this would be the priority of the whole process.
    if (niceness > 0 && process.platform === 'linux') setPriority(niceness);
    const { runJob } = (await import(module)) as JobModule;
    const result = await runJob(input, {
      shared(name) {
        const bytes = shared.get(name);
        if (bytes === undefined) throw new RangeError(`The job was not given the shared bytes \`${name}\``);
        return bytes;
      },
      report: (share) => progress.postMessage(share),
    });
    // Through JSON here too, so that a result is the same whether or not it has crossed a queue.
    return { ok: true, result: JSON.parse(JSON.stringify(result)) };
  } catch (error) {
    return { ok: false, failure: failureOf(error) };
  } finally {
    progress.close();
  }
}
