import {
  drawPrefixes,
  drawWorkload,
  type PrefixSharing,
  type PublicWorkloadId,
  publicWorkload,
} from '@servegym/environments';
import {
  type FleetPlan,
  planFleet,
  planResult,
  profilesOnGpu,
  rankPlans,
  type SloTerm,
  splitTrace,
} from '@servegym/operators';
import { listProfiles } from '@servegym/profiles';
import {
  drawLengths,
  type EngineProfile,
  PROFILE_STATUSES,
  type ProfileStatus,
  RandomStream,
  scaleRate,
  type Trace,
} from '@servegym/simulator';
import { Argument, Command, Option } from 'commander';
import { addDrawnLengths } from '../arguments/drawn-requests.ts';
import { numberAbove, numberFrom, wholeNumber } from '../arguments/options.ts';
import { addPriceOptions, type PriceOptions, withPrices } from '../arguments/price-options.ts';
import { refuseClassBounds, sloOption } from '../arguments/slo-option.ts';
import {
  addTraceOptions,
  readingLine,
  readTraceArgument,
  type TraceArguments,
} from '../arguments/trace-arguments.ts';
import { InputError } from '../input-error.ts';
import { addJobOptions, type JobOptions, withJobs } from '../jobs/open-jobs.ts';
import { printResult } from '../output/print-result.ts';
import { showProgress, untilDone } from '../output/progress.ts';
import { reportPage } from '../output/report-page.ts';
import { requireWritable, writeOutputFile } from '../output/write-output-file.ts';

interface PlanCommandOptions extends TraceArguments, JobOptions, PriceOptions {
  readonly model: string;
  readonly gpus: readonly string[];
  readonly slo: SloTerm[];
  readonly quality: number;
  readonly status?: ProfileStatus;
  readonly maxEngines: number;
  readonly requests: number;
  readonly rateScale: number;
  readonly workload?: keyof typeof WORKLOADS;
  readonly rate?: number;
  readonly inputTokens?: number;
  readonly outputTokens?: number;
  readonly lengthRange?: number;
  readonly hours: number;
  readonly seed: number;
  readonly report?: string;
  readonly json: boolean;
}

/** Most requests a second that are drawn: a choice. */
const MOST_RATE = 1000;

/** Blocks of prefixes that are drawn: some 300 MB of them. */
const MOST_BLOCKS = 20_000_000;

/** Model of a traffic. */
interface DrawnTraffic {
  readonly id: PublicWorkloadId;
  /**
   * Model of the arrivals, where those of the own trace are too few to say how requests come to a GPU. The text that a
   * prompt shares with an earlier one then lies as many requests back as in the trace, not as many seconds.
   */
  readonly arrivals?: PublicWorkloadId;
}

/** Models of traffic by what people call them. */
const WORKLOADS = {
  chat: { id: 'azure-conversation-2023' },
  code: { id: 'azure-code-2023' },
  rag: { id: 'ragpulse', arrivals: 'azure-conversation-2023' },
  agents: { id: 'mooncake-conversation' },
} as const satisfies Record<string, DrawnTraffic>;

/** `servegym plan`: what to buy for a traffic and an SLO. */
export function planCommand(): Command {
  const command = new Command('plan')
    .description('find the cheapest GPUs, and how many of them, for your traffic and SLO')
    .addArgument(
      new Argument('[trace]', 'your traffic: CSV, JSON lines, Parquet or a result of a load generator'),
    )
    .requiredOption('--model <name>', 'the model to serve, or a part of its name, for instance qwen3-32b')
    .addOption(sloOption('ttft_p99=1s,tpot_p99=50ms'))
    .addOption(
      new Option('--gpus <names>', 'GPUs to choose from, parts of their names, for instance h100,l40s')
        .default([], 'all')
        .argParser((text) => (text === 'all' ? [] : text.split(',').map((name) => name.trim()))),
    )
    .addOption(
      new Option('--quality <share>', 'least accuracy of quantized weights, relative to FP16')
        .default(0.98)
        .argParser(numberFrom(0, 1)),
    )
    .addOption(
      new Option('--status <status>', 'only profiles that were made in this way').choices(PROFILE_STATUSES),
    )
    .option('--max-engines <n>', 'most engines of a plan', wholeNumber(1, 256), 64)
    .option('--rate-scale <factor>', 'plan for this many times the traffic', numberAbove(0), 1)
    .addOption(
      new Option('--requests <n>', 'requests of the trace that are simulated, evenly over it')
        .default(8000)
        .argParser(wholeNumber(400, 1_000_000)),
    )
    .addOption(
      new Option(
        '--workload <kind>',
        'instead of a trace: traffic drawn from a model of a public trace',
      ).choices(Object.keys(WORKLOADS)),
    )
    .option(
      '--rate <n>',
      'requests per second of --workload (default: rate of the public trace) or of --input-tokens, for instance 12 or 12/s',
      (text) => numberAbove(0, MOST_RATE)(text.replace(/\/s$/, '')),
    )
    .option('--hours <n>', 'hours of --workload or --rate', numberAbove(0, 24), 1)
    .addOption(
      new Option('--seed <n>', 'seed of drawn traffic, of draft tokens and of the bootstrap')
        .default(0)
        .argParser(wholeNumber(0, 2 ** 31)),
    )
    .option('--report <file.html>', 'write the plans as a page')
    .option('--json', 'print one JSON object', false)
    .addHelpText(
      'after',
      `
Examples:
  servegym plan log.csv --model qwen3-32b --slo ttft_p99=1s,tpot_p99=50ms
  servegym plan log.parquet --model llama-3-70b --gpus h100,h200 --spot --report plan.html
  servegym plan --workload chat --rate 12 --model llama-3-8b
  servegym plan --input-tokens 2048 --output-tokens 256 --rate 12/s --model llama-3-8b`,
    )
    .action(plan);
  return addJobOptions(addTraceOptions(addPriceOptions(addDrawnLengths(command))));
}

async function plan(file: string | undefined, options: PlanCommandOptions): Promise<void> {
  const { json, report, slo, quality, maxEngines, requests, seed } = options;
  refuseClassBounds(slo, 'a plan knows');
  await requireWritable(report);
  const chosen = chosenProfiles(options).map((profile) => ({ profile, isShipped: true }));
  const trace = scaleRate(await requestedTrace(file, options), options.rateScale);
  const { profiles, note } = await withPrices(chosen, options);
  if (!json) console.error(note);
  const split = splitTrace(trace, requests);
  const plans: FleetPlan[] = [];
  let profilesDone = 0;
  const planning = withJobs(options, (jobs) =>
    planFleet(
      jobs,
      profiles,
      { trace, split },
      {
        ...{ slo, minQuality: quality, mostEngines: maxEngines, seed },
        onProgress: (done, of) => {
          profilesDone = done;
          showProgress(`${done} of ${of} profiles`);
        },
        onPlans: (found) => plans.push(...found),
      },
    ),
  );
  const result = await untilDone(planning, () =>
    plans.length === 0 || json
      ? undefined
      : planResult.textSoFar(rankPlans(plans), profilesDone, profiles.length),
  );
  printResult(
    json,
    () => planResult.json(result),
    () => planResult.text(result),
  );
  if (report !== undefined) await writeOutputFile(report, [reportPage(planResult.page(result))]);
}

/** Shipped profiles of a model on the GPUs asked for. @throws InputError with those there are */
function chosenProfiles({ model, gpus, status }: PlanCommandOptions): EngineProfile[] {
  const plain = (words: string) => words.toLowerCase().replace(/[\s_-]/g, '');
  const all = listProfiles();
  const named = all.filter((profile) => plain(profile.model.name) === plain(model));
  const ofModel =
    named.length > 0 ? named : all.filter(({ model: { name } }) => plain(name).includes(plain(model)));
  const models = [...new Set(ofModel.map((profile) => profile.model.name))].sort();
  if (models.length !== 1) {
    const known = models.length > 0 ? models : [...new Set(all.map((profile) => profile.model.name))].sort();
    throw new InputError(`--model: expected one of ${known.join(', ')}, got ${model}`);
  }
  const onGpus = gpus.length === 0 ? ofModel : gpus.flatMap((gpu) => profilesOnGpu(ofModel, gpu));
  const found = [...new Set(onGpus)].filter((profile) => status === undefined || profile.status === status);
  if (found.length > 0) return found;
  const known = [...new Set(ofModel.map(({ gpu }) => gpu.name))].sort();
  throw new InputError(
    `no profile of ${models[0]} is ${[...gpus, status].filter(Boolean).join(', ')}: there are ${known.join(', ')}`,
  );
}

async function requestedTrace(file: string | undefined, options: PlanCommandOptions): Promise<Trace> {
  const { workload, rate, inputTokens, outputTokens, lengthRange, json } = options;
  const hasLengths = (inputTokens ?? outputTokens ?? lengthRange) !== undefined;
  if (file !== undefined) {
    if (workload !== undefined || rate !== undefined || hasLengths)
      throw new InputError('expected a trace or --workload or --input-tokens with --rate, got both');
    const read = await readTraceArgument(file, options);
    if (!json) console.error(readingLine(file, read.reading, read.trace.arrivalMs.length));
    return read.trace;
  }
  if (hasLengths && workload !== undefined)
    throw new InputError('expected --workload or --input-tokens, got both');
  if (hasLengths) return poissonTrace(options);
  if (workload === undefined)
    throw new InputError('nothing to plan for: name a trace or a --workload, or give --input-tokens');
  return drawnTrace(workload, options);
}

/** Traffic of a model, with the prefixes that its prompts share. @throws InputError */
function drawnTrace(workload: keyof typeof WORKLOADS, { rate, hours, seed }: PlanCommandOptions): Trace {
  const { id, arrivals: other }: DrawnTraffic = WORKLOADS[workload];
  const model = publicWorkload(id);
  const { arrivals } = other === undefined ? model : publicWorkload(other);
  const own = model.arrivals.perSecond;
  if (rate === undefined && other !== undefined) {
    throw new InputError(
      `--workload ${workload}: expected --rate, as its trace has ${own.toPrecision(1)} requests a second`,
    );
  }
  const rateScale = rate === undefined ? 1 : rate / arrivals.perSecond;
  const drawn = drawWorkload({ ...model, arrivals }, seed, 3600 * hours, { rateScale });
  const { arrivalSeconds, inputTokens, outputTokens } = drawn;
  const timeScale = other === undefined ? 1 : (rate ?? own) / own;
  return {
    source: `${workload} (${id})`,
    arrivalMs: Float64Array.from(arrivalSeconds, (seconds) => 1000 * seconds),
    inputTokens: Int32Array.from(inputTokens),
    outputTokens: Int32Array.from(outputTokens),
    ...(model.prefixes !== null && {
      prefixBlocks: drawnBlocks(model.prefixes, {
        ...{ workload, seed, inputTokens },
        arrivalSeconds: arrivalSeconds.map((seconds) => timeScale * seconds),
      }),
    }),
  };
}

function drawnBlocks(
  prefixes: PrefixSharing,
  requests: {
    readonly workload: string;
    readonly seed: number;
    readonly arrivalSeconds: readonly number[];
    readonly inputTokens: readonly number[];
  },
): Trace['prefixBlocks'] {
  const { workload, seed, arrivalSeconds, inputTokens } = requests;
  const blocks = inputTokens.reduce((sum, tokens) => sum + Math.ceil(tokens / prefixes.blockTokens), 0);
  if (blocks > MOST_BLOCKS) {
    throw new InputError(
      `--workload ${workload}: expected fewer requests, for less --hours or a lower --rate: ${inputTokens.length.toLocaleString('en-US')} share too many prefixes to hold`,
    );
  }
  const {
    chunkTokens: blockTokens,
    ids,
    offsets,
  } = drawPrefixes(prefixes, seed, arrivalSeconds, inputTokens);
  return { blockTokens, ids, offsets };
}

/** Requests of the given lengths that arrive as a Poisson process. @throws InputError */
function poissonTrace(options: PlanCommandOptions): Trace {
  const { rate, hours, inputTokens, outputTokens, lengthRange: range, seed } = options;
  if (rate === undefined || inputTokens === undefined || outputTokens === undefined)
    throw new InputError('expected --input-tokens, --output-tokens and --rate together');
  const random = new RandomStream(seed, 'arrivals');
  const arrivals: number[] = [];
  for (let s = random.exponential(1 / rate); s < 3600 * hours; s += random.exponential(1 / rate))
    arrivals.push(1000 * s);
  const lengths = drawLengths({ requests: arrivals.length, inputTokens, outputTokens, range, seed });
  return {
    ...lengths,
    source: `${rate} requests/s of ${inputTokens} tokens in, ${outputTokens} out`,
    arrivalMs: Float64Array.from(arrivals),
  };
}
