import type { TaskId } from '@servegym/environments';
import type { JobContext, JobEngine, Json } from '@servegym/jobs';
import { type DatasetRow, recordEpisodes } from './record-episodes.ts';
import { playableServe } from './playable-serve.ts';
import {
  findSharedPolicy,
  type PolicySource,
  type SharedPolicy,
  sharedOfPolicy,
  sharePolicy,
} from './shared-inputs.ts';

interface RecordInput {
  readonly agent: SharedPolicy;
  readonly taskId: TaskId;
  readonly seed: number;
}

/** The job `record-episode`: the rows of one episode of `llmserve`. */
export async function runJob(input: Json, context: JobContext): Promise<Json> {
  const { agent, taskId, seed } = input as unknown as RecordInput;
  const rows = await recordEpisodes(playableServe(), findSharedPolicy(agent, context), {
    taskId,
    seeds: [seed],
  });
  return rows as unknown as Json;
}

/** The rows of an episode for each seed, an episode a job. The same as `recordEpisodes` gives. */
export async function recordWithJobs(
  jobs: JobEngine,
  source: PolicySource,
  taskId: TaskId,
  seeds: readonly number[],
  onShare?: (share: number) => void,
): Promise<DatasetRow[]> {
  const agent = await sharePolicy(jobs, source);
  const episodes = await jobs.run(
    seeds.map((seed) => {
      const input: RecordInput = { agent, taskId, seed };
      return { kind: 'record-episode', input: input as unknown as Json, shared: sharedOfPolicy(agent) };
    }),
    { onProgress: ({ share }) => onShare?.(share) },
  );
  return (episodes as unknown as DatasetRow[][]).flatMap((rows, episode) =>
    rows.map((row) => ({ ...row, episode_id: episode })),
  );
}
