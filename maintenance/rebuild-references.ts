import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { type ReferenceInput, tuneConstant, tunePhase } from '@servegym/agents';
import {
  REFERENCE_RETURNS_URL,
  SEED_SPLITS,
  SERVE_TASKS,
  type SeedReturns,
  type SeedSplit,
  type ServeAction,
  type ServeTask,
  TASK_IDS,
  type TaskId,
  type TaskReference,
  taskFingerprint,
} from '@servegym/environments';
import type { JobEngine, Json } from '@servegym/jobs';
import { Command, Option } from 'commander';
import { wholeNumber } from '../packages/servegym/src/cli/arguments/options.ts';
import { addJobOptions, type JobOptions, withJobs } from '../packages/servegym/src/cli/jobs/open-jobs.ts';
import { showProgress } from '../packages/servegym/src/cli/output/progress.ts';
import { runCommand } from './run-command.ts';

interface CommandOptions extends JobOptions {
  readonly task: TaskId | 'all';
  readonly tune: boolean;
  readonly test: number;
  readonly validation: number;
  readonly train: number;
  readonly planned: number;
}

const MOST_SEEDS = 10_000;

/** Records what the traffic of the tasks is worth to fixed configurations and to planners. `servegym oracle` shows it. */
function rebuildReferencesCommand(): Command {
  const command = new Command('rebuild-references')
    .description(
      'compute the returns that scores are held against where none are recorded for this simulator',
    )
    .addOption(new Option('--task <id>', 'a task').choices([...TASK_IDS, 'all']).default('all'))
    .option('--tune', 'search the best constant configurations anew first', false)
    .addOption(seedsOption('test', 100))
    .addOption(seedsOption('validation', 20))
    .addOption(seedsOption('train', 20))
    .addOption(
      new Option('--planned <n>', 'test seeds that the planner without foresight plays too')
        .default(100)
        .argParser(wholeNumber(0, MOST_SEEDS)),
    );
  return addJobOptions(command)
    .addHelpText(
      'after',
      '\nWhat is recorded is kept as it comes: a rebuild that was stopped goes on where it was.',
    )
    .action(run);
}

function seedsOption(split: SeedSplit, seeds: number): Option {
  return new Option(`--${split} <n>`, `the first seeds of the ${split} split`)
    .default(seeds)
    .argParser(wholeNumber(0, MOST_SEEDS));
}

async function run(options: CommandOptions): Promise<void> {
  const { task, test, validation, train, planned, tune } = options;
  const taskIds = task === 'all' ? TASK_IDS : [task];
  await withJobs(options, (jobs) =>
    rebuildReferences(jobs, {
      url: REFERENCE_RETURNS_URL,
      tasks: taskIds.map((id) => SERVE_TASKS[id]),
      seeds: { test, validation, train },
      ...{ planned, tune, onProgress: showProgress },
    }),
  ).finally(() => showProgress(''));
}

/** Decides where the search of constants begins and which training traces it plays. */
const TUNING_SEED = 0;
/** A file is written at most this often, ms. */
const WRITE_EVERY = 2000;

interface RebuildOptions {
  readonly url: URL;
  readonly tasks: readonly ServeTask[];
  /** Number of the first seeds of each split. */
  readonly seeds: Readonly<Record<SeedSplit, number>>;
  /** Number of test seeds that the planner without foresight plays too. */
  readonly planned: number;
  /** Searches the constants anew. They are also searched where none are recorded. */
  readonly tune: boolean;
  readonly onProgress: (line: string) => void;
}

/** Computes what the file lacks for the tasks and the simulator as they are now, and writes it as it comes. */
async function rebuildReferences(
  jobs: JobEngine,
  { url, tasks, seeds, planned, tune, onProgress }: RebuildOptions,
): Promise<void> {
  const file: ReferenceFile = JSON.parse(readFileSync(url, 'utf8'));
  for (const task of tasks) {
    const known = file[task.id];
    if (tune || known === undefined) file[task.id] = await tunedReference(task, onProgress);
    else if (known.fingerprint !== taskFingerprint(task)) {
      file[task.id] = { ...known, fingerprint: taskFingerprint(task), seeds: {} };
    }
    writeReferenceFile(url, file);
    await playSeeds(jobs, task, file, { url, seeds, planned, onProgress });
  }
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
  const reference = file[task.id];
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
        returns[open[index].seed] = result as unknown as SeedReturns;
        finished++;
        onProgress(`${task.id}: seed ${finished} of ${open.length}`);
        if (Date.now() - written > WRITE_EVERY) write();
      },
    },
  );
  write();
}

/** All that is recorded, by id of the task. */
type ReferenceFile = Record<string, TaskReference>;

/** Writes a line for each seed, in order; a reader never sees half a file. */
function writeReferenceFile(url: URL, file: ReferenceFile): void {
  const tasks = TASK_IDS.filter((id) => file[id] !== undefined).map((id) => {
    const { fingerprint, constant, phases, seeds } = file[id];
    const phaseLines = SERVE_TASKS[id].phases
      .filter(({ name }) => phases[name] !== undefined)
      .map(({ name }) => `      ${JSON.stringify(name)}: ${JSON.stringify(phases[name])}`);
    const seedLines = inOrder(seeds).map(
      ([seed, returns]) => `      ${JSON.stringify(seed)}: ${JSON.stringify(returns)}`,
    );
    return [
      `  ${JSON.stringify(id)}: {`,
      `    "fingerprint": ${JSON.stringify(fingerprint)},`,
      `    "constant": ${JSON.stringify(constant)},`,
      `    "phases": {\n${phaseLines.join(',\n')}\n    },`,
      `    "seeds": {\n${seedLines.join(',\n')}\n    }`,
      '  }',
    ].join('\n');
  });
  const beside = new URL(`${url.href}.${process.pid}`);
  writeFileSync(beside, `{\n${tasks.join(',\n')}\n}\n`);
  renameSync(beside, url);
}

function inOrder(seeds: Readonly<Record<string, SeedReturns>>): [string, SeedReturns][] {
  return Object.entries(seeds).sort(([a], [b]) => Number(a) - Number(b));
}

await runCommand(rebuildReferencesCommand());
