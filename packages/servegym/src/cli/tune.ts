import { SEED_SPLITS } from '@servegym/environments';
import {
  adapterNotes,
  candidateText,
  type Deployment,
  EXTRA_KNOBS,
  joinBlocks,
  longestRequest,
  refusedText,
  type SearchSpace,
  type SplitTraffic,
  sliceTrace,
  splitTrace,
  TUNE_SPACE,
  type TuneResult,
  traceWithin,
  tuneProfile,
  tuneResult,
  vllmDefaults,
  withAdapters,
} from '@servegym/operators';
import { drawPriorities, type EngineProfile } from '@servegym/simulator';
import { InvalidArgumentError } from 'commander';
import {
  deploymentOptions,
  priceOptions,
  readDeployment,
  sloOption,
  withPrices,
} from './arguments/deployment.ts';
import { rangeOf, whole } from './arguments/options.ts';
import { openRecord, readSearchSpace, searchOptions } from './arguments/search.ts';
import {
  openTraffic,
  priorityShares,
  type TrafficSource,
  taskTrace,
  trafficOptions,
  trafficWord,
} from './arguments/traffic.ts';
import { defineCommand, type OptionTable, type OptionValues } from './command-table.ts';
import { InputError, type Verdict } from './failure.ts';
import { readProfile, writeOutputFile } from './files.ts';
import { jobOptions, withJobs } from './jobs.ts';
import { printResult } from './output/print-result.ts';
import { showProgress, untilDone } from './output/progress.ts';
import { reportPage } from './output/report-page.ts';

/** Dimensions that are searched unless `--search` says otherwise. */
const DEFAULT_SPACE: SearchSpace = Object.fromEntries(
  Object.entries(TUNE_SPACE).filter(([name]) => ![...EXTRA_KNOBS, 'autoscaler'].includes(name)),
);
const MOST_REPLICAS = 64;

const options = {
  ...deploymentOptions,
  profile: {
    value: '<name|file.json>',
    repeated: true,
    help: 'the engine profile; several are tuned one after the other',
  },
  slo: sloOption,
  objective: {
    value: '<name>',
    choices: ['goodput', 'cost', 'latency'],
    default: 'goodput',
    help: 'most load, least USD, or shortest latencies',
  },
  ...searchOptions,
  replicas: {
    value: '<n|from..to>',
    parse: parseReplicas,
    help: 'engines that share the traffic (default: 1..8)',
  },
  priorityShares,
  ...priceOptions,
  rateScale: trafficOptions.rateScale,
  requests: whole('<n>', 400, 1_000_000, 'requests that are used, evenly over the traffic', 20_000),
  configurations: whole('<n>', 16, 100_000, 'configurations to start from', 1024),
  seed: trafficOptions.seed,
  report: { value: '<file.html>', writes: true, help: 'write a page' },
  json: { help: 'print one JSON object' },
  ...jobOptions,
} as const satisfies OptionTable;

type TuneValues = OptionValues<typeof options>;
type TuneOptions = Parameters<typeof tuneProfile>[3];

export const tuneCommand = () =>
  defineCommand({
    words: trafficWord,
    options,
    after: `Examples:
  servegym tune log.csv --deployment 'vllm serve Qwen/Qwen3-32B -tp 2' --gpu h100
  servegym tune closed:32x1024:256~0.8 --profile mine.json --profile h100-80gb-llama-3-8b
  servegym tune log.csv --profile mine.json --priority-shares 0.3,0.7 --slo class0_ttft_p99=300ms`,
    action: tune,
  });

async function tune({
  traffic,
  ...values
}: TuneValues & { readonly traffic: TrafficSource }): Promise<Verdict> {
  const { json } = values;
  const space = await readSearchSpace(values.search, DEFAULT_SPACE, TUNE_SPACE);
  if (space === undefined) return 'yes';
  const { found, profiles, note } = await namedDeployments(values);
  if (!json) console.error(note);
  const record = await openRecord(values);
  const results: TuneResult[] = [];
  await withJobs(values, async (jobs) => {
    // The same requests for all profiles.
    const { split, refused, trace } = await splitTraffic(traffic, { ...values, found });
    for (const { notSimulated = [], ...each } of found)
      for (const flag of [...notSimulated, ...adapterNotes(split.search.trace, each)])
        console.error(`not simulated: ${flag}`);
    if (refused.requests > 0) console.error(refusedText(refused));
    for (const profile of profiles)
      results.push(await tuneOne(jobs, profile, split, { ...values, refused, trace, record, space }));
  });
  printResult(json, results, {
    json: () => (results.length === 1 ? tuneResult.json(results[0]) : results.map(tuneResult.json)),
    text: () => results.map(tuneResult.text).join('\n\n'),
  });
  if (values.report !== undefined)
    await writeOutputFile(values.report, [reportPage(tuneResult.page(results))]);
  return results.some(({ possible }) => possible) ? 'yes' : 'no';
}

/** A deployment, or the profile of one without a line. */
type FoundDeployment = Pick<Deployment, 'profile'> & Partial<Deployment>;
type Found = { readonly found: readonly FoundDeployment[] };

/** The profiles of the deployment, or those named, at the prices of today. @throws InputError or TuningError */
async function namedDeployments({ deployment, gpu, profile: names, ...values }: TuneValues) {
  const named = names.length === 0 ? [undefined] : names;
  const found: FoundDeployment[] = await Promise.all(
    named.map(async (name) =>
      deployment === undefined && name !== undefined
        ? { profile: await readProfile(name) }
        : readDeployment(deployment, { gpu, profile: name }),
    ),
  );
  const profiles = found.map(({ profile }) => profile);
  const priced = await withPrices(profiles, values, (index) => !named[index]?.endsWith('.json'));
  return { ...priced, found };
}

async function tuneOne(
  jobs: Parameters<typeof tuneProfile>[0],
  profile: EngineProfile,
  split: SplitTraffic,
  values: TuneValues & Pick<TuneOptions, 'refused' | 'trace' | 'record' | 'space'>,
): Promise<TuneResult> {
  const found: { best?: Parameters<NonNullable<TuneOptions['onBest']>>[0] } = {};
  const { replicas: counts = [1] } = values.space;
  const { replicas = [Math.min(...counts), Math.max(...counts)] } = values;
  let soFar = '';
  const tuning = tuneProfile(jobs, profile, split, {
    ...{ ...values, start: values.configurations, replicas, minQuality: values.quality },
    onProgress: (stage, share) =>
      showProgress(`${profile.name}: ${stage} ${Math.round(100 * share)} %${soFar}`),
    onBest(best) {
      found.best = best;
      soFar = `; best so far ${best.load.toPrecision(3)} times the load: ${candidateText(best.candidate, vllmDefaults(profile))}`;
    },
  });
  return untilDone(tuning, () =>
    found.best === undefined || values.json ? undefined : tuneResult.textSoFar(profile, found.best.candidate),
  );
}

/** The traffic to search on, and to judge on. @throws InputError */
async function splitTraffic(source: TrafficSource, values: TuneValues & Found) {
  const halved = await halves(source, values);
  const classes = new Set(halved.split.search.priorities);
  for (const { priorityClass } of values.slo) {
    if (priorityClass === undefined || classes.has(priorityClass)) continue;
    throw new InputError(
      classes.size === 0
        ? '--slo: expected no bounds of classes, as the requests have none; they get them with --priority-shares'
        : `--slo: expected bounds of the classes that the requests have, ${[...classes].sort().join(', ')}, got class ${priorityClass}`,
    );
  }
  return halved;
}

async function halves(
  source: TrafficSource,
  { priorityShares: shares, requests, seed, json: quiet, found }: TuneValues & Found,
): Promise<Pick<TuneOptions, 'refused' | 'trace'> & { readonly split: SplitTraffic }> {
  const limit = Math.min(...found.map(longestRequest));
  if (source.kind === 'task') {
    if (shares !== undefined)
      throw new InputError('--priority-shares: expected none, as the requests of a task have their classes');
    return { split: taskTraffic(source.task, requests), refused: { requests: 0, longest: 0, limit } };
  }
  const { concurrency, isBatch, ...opened } = await openTraffic(source, { requests, seed, quiet });
  const { trace, refused } = traceWithin(found.reduce(withAdapters, opened.trace), limit);
  if (isBatch) throw new InputError('expected traffic with arrivals or requests in flight, got batch:...');
  const classes = shares && drawPriorities(trace.arrivalMs.length, shares, seed);
  const { search, heldOut } = splitTrace(trace, requests, classes);
  if (concurrency === undefined) return { split: { search, heldOut }, refused, trace };
  return { split: { search: { ...search, concurrency }, heldOut: { ...heldOut, concurrency } }, refused };
}

function parseReplicas(text: string): [number, number] {
  const [from, to] = rangeOf(text.includes('..') ? text : `${text.trim()}..${text.trim()}`) ?? [0, 0];
  if (from >= 1 && to <= MOST_REPLICAS) return [from, to];
  throw new InvalidArgumentError(
    `Expected a number from 1 to ${MOST_REPLICAS}, or a range such as 1..8, got \`${text}\`.`,
  );
}

const EPISODES = 20;

/**
 * The traffic of episodes of a task, a block from each: those of training to search on, those of the test split held
 * out. Of long episodes a block is a stretch, early in the first and late in the last. What tenants take of the memory is
 * left out.
 *
 * @param most Requests in all.
 */
export function taskTraffic(id: string, most: number): SplitTraffic {
  const size = Math.floor(most / (2 * EPISODES));
  const blocksFrom = (first: number) =>
    joinBlocks(
      Array.from({ length: EPISODES }, (_, i) => {
        const episode = taskTrace(id, first + i);
        const requests = episode.trace.arrivalMs.length;
        const length = Math.min(size, requests - 1);
        const start = Math.floor(((i + 0.5) / EPISODES) * (requests - length));
        return sliceTrace(episode, start, start + length);
      }),
    );
  return { search: blocksFrom(SEED_SPLITS.train.first), heldOut: blocksFrom(SEED_SPLITS.test.first) };
}
