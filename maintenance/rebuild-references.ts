import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { isDeepStrictEqual } from 'node:util';
import { AGENTS } from '@servegym/agents';
import {
  type FleetTaskId,
  type FleetTaskReference,
  firstSeeds,
  fleet,
  llmserve,
  SEED_SPLITS,
  type SeedSplit,
  type ServeAction,
  type TaskId,
  type TaskReference,
} from '@servegym/environments';
import type { JobEngine, Json } from '@servegym/jobs';
import { Command, Option } from 'commander';
import { wholeNumber } from '../packages/servegym/src/cli/arguments/options.ts';
import { addJobOptions, type JobOptions, withJobs } from '../packages/servegym/src/cli/jobs/open-jobs.ts';
import { showProgress } from '../packages/servegym/src/cli/output/progress.ts';
import { runCommand } from './run-command.ts';

interface CommandOptions extends JobOptions {
  readonly task: TaskId | FleetTaskId | 'all';
  readonly tune: boolean;
  readonly test?: number;
  readonly validation?: number;
  readonly train?: number;
  readonly planned: number;
}

const MOST_SEEDS = 10_000;

/** Records what the traffic of the tasks is worth to fixed configurations and to planners. `servegym evaluate --check recorded` shows it. */
function rebuildReferencesCommand(): Command {
  const command = new Command('rebuild-references')
    .description(
      'compute the returns that scores are held against where none are recorded for this simulator',
    )
    .addOption(
      new Option('--task <id>', 'a task')
        .choices([...llmserve.tasks.shippedIds, ...fleet.tasks.shippedIds, 'all'])
        .default('all'),
    )
    .option('--tune', 'search the best constant configurations and rules anew first', false)
    .addOption(seedsOption('test'))
    .addOption(seedsOption('validation'))
    .addOption(seedsOption('train'))
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

function seedsOption(split: SeedSplit): Option {
  return new Option(
    `--${split} <n>`,
    `the first seeds of the ${split} split (default: ${SERVE_SEEDS[split]}; in fleet ${FLEET_SEEDS[split]})`,
  ).argParser(wholeNumber(0, MOST_SEEDS));
}

async function run(options: CommandOptions): Promise<void> {
  const { task } = options;
  const serve = llmserve.tasks.shippedIds.filter((id) => task === 'all' || id === task);
  const fleetIds = fleet.tasks.shippedIds.filter((id) => task === 'all' || id === task);
  await withJobs(options, async (jobs) => {
    await rebuildReferences(jobs, serveRecords(serve, options.planned), options);
    await rebuildReferences(jobs, fleetRecords(fleetIds), options);
  }).finally(() => showProgress(''));
}

/** Seeds of each split that are recorded unless the command says otherwise. */
const SERVE_SEEDS: Readonly<Record<SeedSplit, number>> = { test: 100, validation: 20, train: 20 };
const FLEET_SEEDS: Readonly<Record<SeedSplit, number>> = { test: 20, validation: 10, train: 10 };
/** Decides where the search of constants begins and which training traces it plays. */
const TUNING_SEED = 0;
/** Training episodes that the search of rules plays. */
const RULE_TRACES = { few: 1, many: 4 };
/** A file is written at most this often, ms. */
const WRITE_EVERY = 2000;

/** Record of a task. */
interface Reference {
  readonly fingerprint: string;
  readonly seeds: Readonly<Record<string, object>>;
}

/** The records of an environment's tasks. */
interface Records<Id extends string, Kept extends Reference> {
  readonly url: URL;
  /** All tasks of the environment, and those to rebuild. */
  readonly allIds: readonly Id[];
  readonly ids: readonly Id[];
  readonly seeds: Readonly<Record<SeedSplit, number>>;
  /** Job that plays a seed. */
  readonly job: string;
  fingerprint(id: Id): string;
  /** A record without seeds, of settings that are searched for. */
  tune(id: Id): Promise<Kept>;
  /** Input of the job for a seed; `null` where what is known of it suffices. */
  input(id: Id, reference: Kept, seed: number, place: { split: SeedSplit; index: number }): object | null;
  /** Lines of the record between the fingerprint and the seeds. */
  lines(id: Id, reference: Kept): string[];
}

function serveRecords(ids: readonly TaskId[], planned: number): Records<TaskId, TaskReference> {
  return {
    ...{
      url: llmserve.anchors.url,
      allIds: llmserve.tasks.shippedIds,
      ids,
      seeds: SERVE_SEEDS,
      job: 'reference-returns',
    },
    fingerprint: (id) => llmserve.anchors.fingerprint(llmserve.tasks.shipped[id]),
    tune: tunedServe,
    input: (taskId, { constant, phases, seeds }, seed, { split, index }) => {
      const planner = split === 'test' && index < planned;
      const known = seeds[seed];
      if (known !== undefined && (known.planner !== undefined || !planner)) return null;
      const configurations = [
        constant,
        ...Object.values(phases),
        llmserve.tasks.shipped[taskId].defaultAction,
      ];
      return { taskId, seed, configurations, planner, ...(known && { known }) };
    },
    lines: (id, { constant, phases }) => {
      const phaseLines = llmserve.tasks.shipped[id].phases
        .filter(({ name }) => phases[name] !== undefined)
        .map(({ name }) => `      ${JSON.stringify(name)}: ${JSON.stringify(phases[name])}`);
      return [
        `    "constant": ${JSON.stringify(constant)},`,
        `    "phases": {\n${phaseLines.join(',\n')}\n    },`,
      ];
    },
  };
}

function fleetRecords(ids: readonly FleetTaskId[]): Records<FleetTaskId, FleetTaskReference> {
  return {
    ...{ url: fleet.anchors.url, allIds: fleet.tasks.shippedIds, ids, seeds: FLEET_SEEDS },
    job: 'fleet-reference-returns',
    fingerprint: (id) => fleet.anchors.fingerprint(fleet.tasks.shipped[id]),
    tune: async (id) => {
      showProgress(`${id}: best rule, autoscaler and constant`);
      const tuned = AGENTS.fleet.tune(fleet.tasks.shipped[id], RULE_TRACES);
      return { fingerprint: fleet.anchors.fingerprint(fleet.tasks.shipped[id]), ...tuned, seeds: {} };
    },
    input: (taskId, { rule, seeds }, seed) => (seeds[seed] === undefined ? { taskId, seed, rule } : null),
    lines: (_, { rule, inFlightTarget, constantReplicas }) => [
      `    "rule": ${JSON.stringify(rule)},`,
      `    "inFlightTarget": ${inFlightTarget}, "constantReplicas": ${constantReplicas},`,
    ],
  };
}

/** Computes what the file lacks for the tasks and the simulator as they are now, and writes it as it comes. */
async function rebuildReferences<Id extends string, Kept extends Reference>(
  jobs: JobEngine,
  records: Records<Id, Kept>,
  { tune, ...seeds }: CommandOptions,
): Promise<void> {
  const file: Partial<Record<Id, Kept>> = JSON.parse(readFileSync(records.url, 'utf8'));
  for (const id of records.ids) {
    const known = file[id] as Kept | undefined;
    const fingerprint = records.fingerprint(id);
    const settings: Kept =
      tune || known === undefined ? await records.tune(id) : { ...known, fingerprint, seeds: {} };
    // Returns still hold where neither the task nor a setting has changed.
    const kept = isDeepStrictEqual({ ...known, seeds: {} }, { ...settings, seeds: {} });
    const reference: Kept = kept ? { ...settings, seeds: known!.seeds } : settings;
    file[id] = reference;
    writeReferenceFile(records, file);
    await playSeeds(jobs, records, file, id, reference, { ...records.seeds, ...definedOf(seeds) });
  }
}

/** The splits whose number of seeds was asked for. */
function definedOf({ test, validation, train }: Partial<Record<SeedSplit, number>>) {
  const asked = Object.entries({ test, validation, train }).filter(([, count]) => count !== undefined);
  return Object.fromEntries(asked) as Partial<Record<SeedSplit, number>>;
}

async function tunedServe(id: TaskId): Promise<TaskReference> {
  const task = llmserve.tasks.shipped[id];
  const phases: Record<string, ServeAction> = {};
  for (const phase of task.phases) {
    const { action } = await AGENTS.llmserve.tune.phase(phase, {
      taskId: task.id,
      seed: TUNING_SEED,
      traces: { few: 2, many: 6 },
      onProgress: ({ episodes }) => showProgress(`${task.id}: ${phase.name}, ${episodes} episodes`),
    });
    phases[phase.name] = action;
  }
  const { action: constant } = await AGENTS.llmserve.tune.constant({
    taskId: task.id,
    seed: TUNING_SEED,
    traces: { few: 4, many: 16 },
    onProgress: ({ episodes }) => showProgress(`${task.id}: best constant, ${episodes} episodes`),
  });
  return { fingerprint: llmserve.anchors.fingerprint(task), constant, phases, seeds: {} };
}

async function playSeeds<Id extends string, Kept extends Reference>(
  jobs: JobEngine,
  records: Records<Id, Kept>,
  file: Partial<Record<Id, Kept>>,
  id: Id,
  reference: Kept,
  counts: Readonly<Record<SeedSplit, number>>,
): Promise<void> {
  const returns: Record<string, object> = { ...reference.seeds };
  const open: { readonly seed: number; readonly input: object }[] = [];
  for (const split of Object.keys(SEED_SPLITS) as SeedSplit[]) {
    for (const [index, seed] of firstSeeds(split, counts[split]).entries()) {
      const input = records.input(id, reference, seed, { split, index });
      if (input !== null) open.push({ seed, input });
    }
  }
  let finished = 0;
  let written = Date.now();
  const write = () => {
    file[id] = { ...reference, seeds: returns };
    writeReferenceFile(records, file);
    written = Date.now();
  };
  await jobs.run(
    open.map(({ input }) => ({ kind: records.job, input: { kind: records.job, ...input } as Json })),
    {
      onResult: (result, index) => {
        returns[open[index].seed] = result as object;
        finished++;
        showProgress(`${id}: seed ${finished} of ${open.length}`);
        if (Date.now() - written > WRITE_EVERY) write();
      },
    },
  );
  write();
}

/** Writes a line for each seed, in order; a reader never sees half a file. */
function writeReferenceFile<Id extends string, Kept extends Reference>(
  { url, allIds, lines }: Records<Id, Kept>,
  file: Partial<Record<Id, Kept>>,
): void {
  const tasks = allIds.flatMap((id) => {
    const reference = file[id];
    if (reference === undefined) return [];
    const seedLines = Object.entries(reference.seeds)
      .sort(([a], [b]) => Number(a) - Number(b))
      .map(([seed, returns]) => `      ${JSON.stringify(seed)}: ${JSON.stringify(returns)}`);
    return [
      [
        `  ${JSON.stringify(id)}: {`,
        `    "fingerprint": ${JSON.stringify(reference.fingerprint)},`,
        ...lines(id, reference),
        `    "seeds": {\n${seedLines.join(',\n')}\n    }`,
        '  }',
      ].join('\n'),
    ];
  });
  const beside = new URL(`${url.href}.${process.pid}`);
  writeFileSync(beside, `{\n${tasks.join(',\n')}\n}\n`);
  renameSync(beside, url);
}

await runCommand(rebuildReferencesCommand());
