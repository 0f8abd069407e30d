import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { AGENTS, createFleetPolicy, type DatasetRow, record, recordEpisodes } from '@servegym/agents';
import {
  firstSeeds,
  fleet,
  inferencegym,
  llmserve,
  SEED_SPLITS,
  type SeedSplit,
  SHIPPED_TABLE_URL,
} from '@servegym/environments';
import { Command, Option } from 'commander';
import { findPolicy, tasksFor } from '../arguments/find-policy.ts';
import { wholeNumber } from '../arguments/options.ts';
import { findGymPolicy } from '../evaluate/evaluate-in-process.ts';
import { InputError } from '../input-error.ts';
import { addJobOptions, type JobOptions, withJobs } from '../jobs/open-jobs.ts';
import { sourceFolder, sourceHash } from '../jobs/source-hash.ts';
import { printResult } from '../output/print-result.ts';
import { showProgress } from '../output/progress.ts';
import { requireWritable, writeOutputFile } from '../output/write-output-file.ts';
import { type DescribedEnvironment, encodeDataset, wholeColumns } from './dataset-file.ts';

interface ExportOptions extends JobOptions {
  readonly env: keyof typeof RECORD;
  readonly agent: string;
  readonly task: string;
  readonly episodes: number;
  readonly split: SeedSplit;
  readonly out: string;
  readonly json: boolean;
}

/** Recorded episodes, with the facts for the metadata of their file. */
interface Recording {
  readonly environment: DescribedEnvironment & { readonly id: string; readonly version: string };
  readonly taskId: string;
  readonly policy: string;
  readonly rows: readonly DatasetRow[];
}

/** `servegym datasets`: episodes for offline learning. */
export function datasetsCommand(): Command {
  const exporting = new Command('export')
    .description('play episodes and write them as Parquet, a row for each window')
    .requiredOption('--agent <name|file>', 'the policy that plays: a name, or a file of `servegym train`')
    .requiredOption('--task <id>', 'the task')
    .addOption(new Option('--env <id>', 'the environment').choices(Object.keys(RECORD)).default('llmserve'))
    .option('--episodes <n>', 'episodes, each with a seed of its own', wholeNumber(1, 100_000), 20)
    .addOption(
      new Option('--split <name>', 'where the seeds come from')
        .choices(Object.keys(SEED_SPLITS))
        .default('train'),
    )
    .requiredOption('--out <file.parquet>', 'the file to write')
    .option('--json', 'print one JSON object', false)
    .addHelpText(
      'after',
      `
Columns: episode_id, step, seed, observation.*, action.*, reward, terminated, truncated, next_observation.* and info.*.
Entries of lists and of objects have columns of their own, as in observation.priority_distribution.0 and
info.classes.interactive.ttft_p99_ms; info.events and info.replicas are JSON. Whole numbers are 64-bit integers, other figures doubles.
The key-value metadata of the file says which environment, version, simulator, table, policy and seeds it comes from.`,
    )
    .action(exportDataset);
  return new Command('datasets')
    .description('episodes for offline learning')
    .addCommand(addJobOptions(exporting));
}

async function exportDataset(options: ExportOptions): Promise<void> {
  const { episodes, split, out, json } = options;
  await requireWritable(out);
  const seeds = firstSeeds(split, episodes);
  const recording = await RECORD[options.env](options, seeds);
  const { environment, taskId, policy, rows } = recording;
  const metadata = {
    environment: environment.id,
    version: environment.version,
    simulator_hash: sourceHash([sourceFolder('@servegym/simulator'), sourceFolder('@servegym/environments')]),
    ...(environment.id === inferencegym.id && { table_hash: fileHash(SHIPPED_TABLE_URL) }),
    task: taskId,
    policy,
    split,
    seeds: JSON.stringify([seeds[0], seeds.at(-1)]),
  };
  const isWhole = wholeColumns(environment);
  await writeOutputFile(out, [encodeDataset(rows, { metadata, isWhole })]);
  printResult(
    json,
    () => ({ ...metadata, episodes, rows: rows.length, file: out }),
    () => `wrote ${rows.length.toLocaleString('en-US')} windows of ${episodes} episodes to ${out}`,
  );
}

function fileHash(file: URL): string {
  return createHash('sha256').update(readFileSync(file)).digest('hex');
}

async function recordServe(options: ExportOptions, seeds: readonly number[]): Promise<Recording> {
  const { agent, task } = options;
  const taskId = llmserve.tasks.shippedIds.find((id) => id === task);
  if (taskId === undefined)
    throw new InputError(`expected --task, one of ${llmserve.tasks.shippedIds.join(', ')}, got ${task}`);
  const found = await findPolicy(agent);
  tasksFor(taskId, [found]);
  const onEpisode = progress(seeds.length);
  const rows = await withJobs(options, (jobs) =>
    record(
      {
        ...{ environment: 'llmserve', policy: found, taskIds: [taskId], seeds },
        onProgress: (share) => onEpisode(Math.round(share * seeds.length)),
      },
      jobs,
    ),
  );
  return { environment: llmserve.definition(), taskId, policy: found.policy.name, rows };
}

async function recordGym({ agent, task }: ExportOptions, seeds: readonly number[]): Promise<Recording> {
  const { policy, taskIds } = await findGymPolicy(agent);
  const taskId = taskIds.find((id) => String(id) === task);
  if (taskId === undefined) {
    throw new InputError(`expected --task, one of ${taskIds.join(', ')}, got ${task}`);
  }
  const environment = inferencegym.definition();
  const rows = await recordEpisodes(AGENTS.inferencegym.playable(), policy, {
    ...{ taskId, seeds },
    onEpisode: progress(seeds.length),
  });
  return { environment, taskId: String(taskId), policy: policy.name, rows };
}

async function recordFleet({ agent, task }: ExportOptions, seeds: readonly number[]): Promise<Recording> {
  const policy = createFleetPolicy(agent);
  const taskId = fleet.tasks.shippedIds.find((id) => id === task);
  if (taskId === undefined) {
    throw new InputError(`expected --task, one of ${fleet.tasks.shippedIds.join(', ')}, got ${task}`);
  }
  const rows = await recordEpisodes(AGENTS.fleet.playable(), policy, {
    ...{ taskId, seeds },
    onEpisode: progress(seeds.length),
  });
  return { environment: fleet.definition(), taskId, policy: policy.name, rows };
}

const RECORD = { llmserve: recordServe, fleet: recordFleet, inferencegym: recordGym };

function progress(planned: number): (finished: number) => void {
  return (finished) => showProgress(finished < planned ? `episode ${finished} of ${planned}` : '');
}
