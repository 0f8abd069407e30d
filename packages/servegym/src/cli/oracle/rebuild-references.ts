import { tuneConstant, tunePhase } from '@servegym/agents';
import {
  SEED_SPLITS,
  type SeedReturns,
  type SeedSplit,
  type ServeAction,
  type ServeTask,
  type TaskReference,
  taskFingerprint,
} from '@servegym/environments';
import type { JobEngine, Json } from '@servegym/jobs';
import { type ReferenceFile, readReferenceFile, writeReferenceFile } from './reference-file.ts';
import type { ReferenceInput } from './reference-job.ts';

/** Decides where the search of constants begins and which training traces it plays. */
const TUNING_SEED = 0;
/** A file is written at most this often, ms. */
const WRITE_EVERY = 2000;

export interface RebuildOptions {
  readonly url: URL;
  readonly tasks: readonly ServeTask[];
  /** How many of the first seeds of each split. */
  readonly seeds: Readonly<Record<SeedSplit, number>>;
  /** How many of the test seeds the planner without foresight plays too. */
  readonly planned: number;
  /** Whether to search the constants anew. They are also searched where none are recorded. */
  readonly tune: boolean;
  readonly onProgress: (line: string) => void;
}

/** Computes what the file lacks for the tasks and the simulator as they are now, and writes it as it comes. */
export async function rebuildReferences(
  jobs: JobEngine,
  { url, tasks, seeds, planned, tune, onProgress }: RebuildOptions,
): Promise<ReferenceFile> {
  const file = readReferenceFile(url);
  for (const task of tasks) {
    const known = file[task.id];
    if (tune || known === undefined) file[task.id] = await tunedReference(task, onProgress);
    else if (known.fingerprint !== taskFingerprint(task)) {
      file[task.id] = { ...known, fingerprint: taskFingerprint(task), seeds: {} };
    }
    writeReferenceFile(url, file);
    await playSeeds(jobs, task, file, { url, seeds, planned, onProgress });
  }
  return Object.fromEntries(tasks.map(({ id }) => [id, file[id]!]));
}

async function tunedReference(
  task: ServeTask,
  onProgress: RebuildOptions['onProgress'],
): Promise<TaskReference> {
  const phases: Record<string, ServeAction> = {};
  for (const phase of task.phases) {
    const { action } = await tunePhase(phase, {
      taskId: task.id,
      seed: TUNING_SEED,
      traces: { few: 2, many: 6 },
      onProgress: ({ episodes }) => onProgress(`${task.id}: ${phase.name}, ${episodes} episodes`),
    });
    phases[phase.name] = action;
  }
  const { action: constant } = await tuneConstant({
    taskId: task.id,
    seed: TUNING_SEED,
    traces: { few: 4, many: 16 },
    onProgress: ({ episodes }) => onProgress(`${task.id}: best constant, ${episodes} episodes`),
  });
  return { fingerprint: taskFingerprint(task), constant, phases, seeds: {} };
}

async function playSeeds(
  jobs: JobEngine,
  task: ServeTask,
  file: ReferenceFile,
  { url, seeds, planned, onProgress }: Omit<RebuildOptions, 'tasks' | 'tune'>,
): Promise<void> {
  const reference = file[task.id]!;
  const returns: Record<string, SeedReturns> = { ...reference.seeds };
  const configurations = [reference.constant, ...Object.values(reference.phases), task.defaultAction];
  const open: ReferenceInput[] = [];
  for (const split of Object.keys(SEED_SPLITS) as SeedSplit[]) {
    for (let i = 0; i < seeds[split]; i++) {
      const seed = SEED_SPLITS[split].first + i;
      const planner = split === 'test' && i < planned;
      const known = returns[seed];
      if (known !== undefined && (known.planner !== undefined || !planner)) continue;
      open.push({ taskId: task.id, seed, configurations, planner, ...(known && { known }) });
    }
  }
  let finished = 0;
  let written = Date.now();
  const write = () => {
    file[task.id] = { ...reference, seeds: returns };
    writeReferenceFile(url, file);
    written = Date.now();
  };
  await jobs.run(
    open.map((input) => ({ kind: 'reference-returns', input: input as unknown as Json })),
    {
      onResult: (result, index) => {
        returns[open[index]!.seed] = result as unknown as SeedReturns;
        finished++;
        onProgress(`${task.id}: seed ${finished} of ${open.length}`);
        if (Date.now() - written > WRITE_EVERY) write();
      },
    },
  );
  write();
}
