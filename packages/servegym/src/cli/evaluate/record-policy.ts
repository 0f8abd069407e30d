import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { agentsOf, record, tasksToPlay } from '@servegym/agents';
import { firstSeeds, type SeedSplit, SHIPPED_TABLE_URL } from '@servegym/environments';
import { InputError } from '../input-error.ts';
import { withJobs } from '../jobs/open-jobs.ts';
import { sourceFolder, sourceHash } from '../jobs/source-hash.ts';
import { printResult } from '../output/print-result.ts';
import { showShare } from '../output/progress.ts';
import { requireWritable, writeOutputFile } from '../output/write-output-file.ts';
import type { EvaluateOptions } from './command.ts';
import { encodeDataset, wholeColumns } from './dataset-file.ts';
import { readInputs, readPolicies } from './read-play.ts';

/** Plays episodes for offline learning and writes them as Parquet, a row for each window. */
export async function recordPolicy(out: string, options: EvaluateOptions): Promise<void> {
  const { env, episodes, split = 'train', json, threads, queue } = options;
  await requireWritable(out);
  const { task, inputs } = await readInputs(options);
  const [policy, ...others] = await readPolicies(options);
  if (policy === undefined || others.length > 0 || 'model' in policy)
    throw new InputError('expected one policy beside --record, by its name or file');
  const { environment: entry, playable } = agentsOf(env);
  const [taskId, ...further] = tasksToPlay(env, task, [policy.found]);
  if (taskId === undefined || further.length > 0)
    throw new InputError(`expected --task, one of ${entry.tasks.ids().join(', ')}, got ${task}`);
  const seeds = firstSeeds(split as SeedSplit, episodes);
  const plan = { environment: env, policy: policy.found, taskIds: [taskId], seeds, inputs };
  const rows = await withJobs({ threads, queue }, (jobs) => record({ ...plan, onProgress: showShare }, jobs));
  showShare(1);
  const metadata = {
    environment: env,
    version: playable(inputs).version,
    simulator_hash: sourceHash([sourceFolder('@servegym/simulator'), sourceFolder('@servegym/environments')]),
    ...(entry.takes.includes('table') && {
      table_hash: inputs.table?.hash ?? fileHash(SHIPPED_TABLE_URL),
    }),
    task: String(taskId),
    policy: policy.found.policy.name,
    split,
    seeds: JSON.stringify([seeds[0], seeds.at(-1)]),
  };
  await writeOutputFile(out, [encodeDataset(rows, { metadata, isWhole: wholeColumns(entry.definition()) })]);
  printResult(
    json,
    () => ({ ...metadata, episodes, rows: rows.length, file: out }),
    () => `wrote ${rows.length.toLocaleString('en-US')} windows of ${episodes} episodes to ${out}`,
  );
}

function fileHash(file: URL): string {
  return createHash('sha256').update(readFileSync(file)).digest('hex');
}
