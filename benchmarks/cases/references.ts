import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { isDeepStrictEqual } from 'node:util';
import { AGENTS } from '@servegym/agents';
import {
  type FleetTaskId,
  firstSeeds,
  fleet,
  llmserve,
  SEED_SPLITS,
  type SeedSplit,
  type ServeAction,
  type TaskId,
} from '@servegym/environments';
import type { Json } from '@servegym/jobs';
import { openJobs, stoppable } from '../../packages/servegym/src/cli/jobs.ts';
import { showProgress } from '../../packages/servegym/src/cli/output/progress.ts';
import { benchmark, text } from '../harness.ts';

/** Decides where the search of constants begins and which training traces it plays. */
const TUNING_SEED = 0;
/** Training episodes that the search of rules of `fleet` plays. */
const RULE_TRACES = { few: 1, many: 4 };
/** A file is written at most this often, ms. */
const WRITE_EVERY = 2000;

/** Record of a task: what the returns depend on, the settings that were searched for, and the returns of each seed. */
interface Reference {
  readonly fingerprint: string;
  readonly seeds: Readonly<Record<string, object>>;
  readonly [setting: string]: unknown;
}

/** How the records of an environment are made. */
interface Records {
  readonly url: URL;
  readonly taskIds: readonly string[];
  /** Seeds of each split that are recorded unless the command says otherwise. */
  readonly seeds: Readonly<Record<SeedSplit, number>>;
  /** Job that plays a seed. */
  readonly job: string;
  fingerprint(taskId: string): string;
  /** The settings of a record, searched for. */
  tune(taskId: string): Promise<object>;
  /** Input of the job for a seed; `null` where what is known of it suffices. */
  input(taskId: string, reference: Reference, seed: number, isPlanned: boolean): object | null;
}

const SERVE: Records = {
  url: llmserve.anchors.url,
  taskIds: llmserve.tasks.shippedIds,
  seeds: { test: 100, validation: 20, train: 20 },
  job: 'reference-returns',
  fingerprint: (taskId) => llmserve.anchors.fingerprint(llmserve.tasks.shipped[taskId as TaskId]),
  async tune(taskId) {
    const { id, phases } = llmserve.tasks.shipped[taskId as TaskId];
    const { tune } = AGENTS.llmserve;
    const planFor = (what: string, few: number, many: number) => ({
      ...{ taskId: id, seed: TUNING_SEED, traces: { few, many } },
      onProgress: ({ episodes }: { readonly episodes: number }) =>
        showProgress(`${id}: ${what}, ${episodes} episodes`),
    });
    const best: Record<string, ServeAction> = {};
    for (const phase of phases)
      best[phase.name] = (await tune.constant({ ...planFor(phase.name, 2, 6), phase })).action;
    return { constant: (await tune.constant(planFor('best constant', 4, 16))).action, phases: best };
  },
  input(taskId, { constant, phases, seeds }, seed, planner) {
    const known = seeds[seed] as { readonly planner?: number } | undefined;
    if (known !== undefined && (known.planner !== undefined || !planner)) return null;
    const { defaultAction } = llmserve.tasks.shipped[taskId as TaskId];
    const configurations = [constant, ...Object.values(phases as object), defaultAction];
    return { taskId, seed, configurations, planner, ...(known && { known }) };
  },
};

const FLEET: Records = {
  url: fleet.anchors.url,
  taskIds: fleet.tasks.shippedIds,
  seeds: { test: 20, validation: 10, train: 10 },
  job: 'fleet-reference-returns',
  fingerprint: (taskId) => fleet.anchors.fingerprint(fleet.tasks.shipped[taskId as FleetTaskId]),
  async tune(taskId) {
    showProgress(`${taskId}: best rule, autoscaler and constant`);
    return AGENTS.fleet.tune(fleet.tasks.shipped[taskId as FleetTaskId], RULE_TRACES);
  },
  input: (taskId, { rule, seeds }, seed) => (seeds[seed] === undefined ? { taskId, seed, rule } : null),
};

export default benchmark({
  what: 'What the traffic of the tasks of llmserve and fleet is worth to fixed configurations and to planners: the returns that scores are held against. Computes them where none are recorded for this simulator, and writes them into the checkout as they come; `servegym evaluate --check recorded` shows them. `--tune` searches the best settings anew first. `--test`, `--validation` and `--train`: how many seeds of each split; `--planned`: test seeds of llmserve that the planner without foresight plays too.',
  options: {
    ...{ task: 'all', tune: false, test: text, validation: text, train: text },
    ...{ planned: 100, threads: availableParallelism(), queue: text },
  },
  async *run({ task, tune, planned, threads, queue, ...counts }) {
    const jobs = stoppable(await openJobs({ threads, queue }));
    try {
      for (const records of [SERVE, FLEET])
        for (const taskId of records.taskIds) {
          if (task !== 'all' && task !== taskId) continue;
          const file: Record<string, Reference> = JSON.parse(readFileSync(records.url, 'utf8'));
          const known = file[taskId];
          const settings = tune || known === undefined ? await records.tune(taskId) : known;
          const fingerprint = records.fingerprint(taskId);
          const found: Reference = { ...settings, ...{ fingerprint, seeds: {} } };
          // Returns still hold where neither the task nor a setting has changed.
          const returns = { ...(isDeepStrictEqual({ ...known, seeds: {} }, found) ? known!.seeds : {}) };
          const write = () => {
            file[taskId] = { ...found, seeds: returns };
            writeReferenceFile(records, file);
          };
          write();
          const open = openSeeds(records, taskId, { ...found, seeds: returns }, counts, planned);
          let finished = 0;
          let written = Date.now();
          await jobs.run(
            open.map(({ input }) => ({ kind: records.job, input: { kind: records.job, ...input } as Json })),
            {
              onResult(result, index) {
                returns[open[index]!.seed] = result as object;
                finished++;
                showProgress(`${taskId}: seed ${finished} of ${open.length}`);
                if (Date.now() - written < WRITE_EVERY) return;
                write();
                written = Date.now();
              },
            },
          );
          write();
          yield { task: taskId, played: open.length, recorded: Object.keys(returns).length };
        }
    } finally {
      showProgress('');
      await jobs.close();
    }
  },
});

/** Seeds of which something is not known, with the inputs of their jobs. */
function openSeeds(
  records: Records,
  taskId: string,
  reference: Reference,
  counts: Readonly<Partial<Record<SeedSplit, string>>>,
  planned: number,
) {
  return (Object.keys(SEED_SPLITS) as SeedSplit[]).flatMap((split) =>
    firstSeeds(split, Number(counts[split] ?? records.seeds[split])).flatMap((seed, index) => {
      const input = records.input(taskId, reference, seed, split === 'test' && index < planned);
      return input === null ? [] : [{ seed, input }];
    }),
  );
}

/** Writes a line for each setting and each seed, in order; a reader never sees half a file. */
function writeReferenceFile({ url, taskIds }: Records, file: Readonly<Record<string, Reference>>): void {
  const lines = (object: object, indent: string) =>
    Object.entries(object).map(([key, value]) => `${indent}${JSON.stringify(key)}: ${JSON.stringify(value)}`);
  const tasks = taskIds.flatMap((id) => {
    if (file[id] === undefined) return [];
    const { fingerprint, seeds, ...settings } = file[id];
    const [head, ofSeeds] = [lines({ fingerprint, ...settings }, '    '), lines(seeds, '      ')];
    return `  ${JSON.stringify(id)}: {\n${head.join(',\n')},\n    "seeds": {\n${ofSeeds.join(',\n')}\n    }\n  }`;
  });
  const beside = new URL(`${url.href}.${process.pid}`);
  writeFileSync(beside, `{\n${tasks.join(',\n')}\n}\n`);
  renameSync(beside, url);
}
