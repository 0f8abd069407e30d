import type { TaskId } from '@servegym/environments';
import {
  type Candidate,
  EXTRA_KNOBS,
  KNOB_NAMES,
  type KnobName,
  type SloTerm,
  type SplitTraffic,
  splitTrace,
  type TuneResult,
  tuneProfile,
  tuneResult,
} from '@servegym/operators';
import { drawPriorities, type EngineProfile, type Trace } from '@servegym/simulator';
import { Command, InvalidArgumentError, Option } from 'commander';
import { addDrawnRequests, drawnRequests } from '../arguments/drawn-requests.ts';
import { numberAbove, numberFrom, wholeNumber } from '../arguments/options.ts';
import { addPriceOptions, type PriceOptions, withPrices } from '../arguments/price-options.ts';
import { readProfile } from '../arguments/read-input-file.ts';
import {
  addSchedulerOptions,
  type SchedulerOptions,
  withSchedulerOptions,
} from '../arguments/scheduler-options.ts';
import { sloOption } from '../arguments/slo-option.ts';
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
import { pngRenderer } from '../output/render-png.ts';
import { reportPage, reportPlot } from '../output/report-page.ts';
import { requireWritable, writeOutputFile } from '../output/write-output-file.ts';
import { parseShares } from '../simulate/serving-changes.ts';
import { TUNABLE_TASKS, taskTraffic } from './task-traffic.ts';

interface TuneCommandOptions extends TraceArguments, JobOptions, PriceOptions, SchedulerOptions {
  readonly profile: readonly string[];
  readonly trace?: string;
  readonly workload?: TaskId;
  readonly slo: SloTerm[];
  readonly objective: TuneResult['objective'];
  readonly knobs: CommandKnob[];
  readonly minQuality: number;
  readonly replicas?: readonly [number, number];
  readonly priorityShares?: readonly number[];
  readonly concurrency?: number;
  readonly inputTokens?: number;
  readonly outputTokens?: number;
  readonly lengthRange?: number;
  readonly rateScale: number;
  readonly requests: number;
  readonly configurations: number;
  readonly seed: number;
  readonly report?: string;
  readonly plot?: string;
  readonly json: boolean;
}

const OBJECTIVES: readonly TuneResult['objective'][] = ['goodput', 'cost', 'latency'];
/** Knobs of `--knobs`: the settings of an engine, and the number of engines. */
type CommandKnob = KnobName | 'replicas';
const KNOBS: readonly CommandKnob[] = [...(Object.keys(KNOB_NAMES) as KnobName[]), 'replicas'];
const DEFAULT_KNOBS = KNOBS.filter((name) => !(EXTRA_KNOBS as readonly CommandKnob[]).includes(name));
const MOST_REPLICAS = 64;

/** `servegym tune`: which settings serve a traffic best. */
export function tuneCommand(): Command {
  const command = new Command('tune')
    .description('find the engine settings that serve your traffic best under your SLO')
    .requiredOption(
      '--profile <name|file.json...>',
      'engine profiles (see `servegym profiles`); several are tuned one after the other and compared',
    )
    .option(
      '--trace <file>',
      'your traffic: CSV, JSON lines, Parquet or a result of vllm bench serve or GuideLLM',
    )
    .addOption(
      new Option('--workload <task>', 'instead of a trace: the traffic of a task of llmserve')
        .choices(TUNABLE_TASKS)
        .conflicts(['trace', 'concurrency']),
    )
    .addOption(sloOption('ttft_p99=2s,tpot_p99=100ms', '; class0_ before it bounds the most urgent class'))
    .addOption(
      new Option(
        '--objective <name>',
        'goodput: highest sustained load; cost: lowest USD; latency: lowest share of the limits',
      )
        .choices(OBJECTIVES)
        .default('goodput'),
    )
    .addOption(
      new Option(
        '--knobs <names>',
        `settings to search: \`default\`, which is ${DEFAULT_KNOBS.join(', ')}; in addition or alone: ${EXTRA_KNOBS.join(', ')}`,
      )
        .default(DEFAULT_KNOBS, 'default')
        .argParser(parseKnobs),
    )
    .addOption(
      new Option('--min-quality <share>', 'least accuracy of quantized weights, relative to FP16')
        .default(0)
        .argParser(numberFrom(0, 1)),
    )
    .addOption(
      new Option(
        '--replicas <n|from..to>',
        'engines that may share the traffic (default: 1..8; 1 where --knobs leaves replicas out)',
      ).argParser(parseReplicas),
    )
    .addOption(
      new Option(
        '--priority-shares <shares>',
        'priority classes drawn for the requests of a trace, the most urgent first, for instance 0.2,0.8',
      )
        .argParser(parseShares)
        .conflicts('workload'),
    )
    .option('--rate-scale <factor>', 'plan for this many times the traffic', numberAbove(0), 1)
    .addOption(
      new Option(
        '--requests <n>',
        'requests of the trace that are used, evenly over it, or drawn with --concurrency',
      )
        .default(20_000)
        .argParser(wholeNumber(400, 1_000_000)),
    )
    .option('--configurations <n>', 'configurations to start from', wholeNumber(16, 100_000), 1024)
    .addOption(
      new Option('--seed <n>', 'seed of the acceptance of draft tokens and of the bootstrap')
        .default(0)
        .argParser(wholeNumber(0, Number.MAX_SAFE_INTEGER)),
    )
    .option('--report <file.html>', 'write the report as a page')
    .option('--plot <file.svg|file.png>', 'write the Pareto plot of the first profile')
    .option('--json', 'print one JSON object', false)
    .addHelpText(
      'after',
      `
Examples:
  servegym tune --profile a100-40gb-llama-3-8b --trace azure-llm-2023-conv.csv --slo ttft_p99=1s,tpot_p99=50ms
  servegym tune --profile a100-40gb-llama-3-8b h100-80gb-llama-3-8b --trace log.parquet --replicas 1..16 --report tune.html
  servegym tune --profile a100-40gb-llama-3-8b --concurrency 32 --input-tokens 1024 --output-tokens 256 --length-range 0.8
  servegym tune --profile a100-40gb-llama-3-8b --trace log.csv --priority-shares 0.3,0.7 --slo class0_ttft_p99=300ms,ttft_p99=5s`,
    )
    .action(tune);
  return addJobOptions(addTraceOptions(addPriceOptions(addSchedulerOptions(addDrawnRequests(command)))));
}

async function tune(options: TuneCommandOptions): Promise<void> {
  const { profiles, note } = await withPrices(
    await Promise.all(
      options.profile.map(async (name) => ({
        profile: withSchedulerOptions(await readProfile(name), options),
        isShipped: !name.endsWith('.json'),
      })),
    ),
    options,
  );
  if (!options.json) console.error(note);
  await requireWritable(options.report);
  await requireWritable(options.plot);
  if (options.plot !== undefined) rendererFor(options.plot);
  const results: TuneResult[] = [];
  await withJobs(options, async (jobs) => {
    const split = await requestedTraffic(options);
    for (const profile of profiles) results.push(await tuneOne(jobs, profile, split, options));
  });
  printResult(
    options.json,
    () => (results.length === 1 ? tuneResult.json(results[0]) : results.map(tuneResult.json)),
    () => results.map(tuneResult.text).join('\n\n'),
  );
  if (options.report !== undefined)
    await writeOutputFile(options.report, [reportPage(tuneResult.page(results))]);
  if (options.plot !== undefined) await writePlot(options.plot, results[0]);
}

async function tuneOne(
  jobs: Parameters<typeof tuneProfile>[0],
  profile: EngineProfile,
  split: SplitTraffic,
  options: TuneCommandOptions,
): Promise<TuneResult> {
  const found: { best?: Candidate } = {};
  const tuning = tuneProfile(jobs, profile, split, {
    ...{ slo: options.slo, objective: options.objective, minQuality: options.minQuality },
    knobs: options.knobs.filter((name) => name !== 'replicas').map((name) => KNOB_NAMES[name]),
    ...{
      replicas: options.replicas ?? (options.knobs.includes('replicas') ? [1, 8] : [1, 1]),
      rateScale: options.rateScale,
      start: options.configurations,
      seed: options.seed,
    },
    onProgress: (stage, share) => showProgress(`${profile.name}: ${stage} ${Math.round(100 * share)} %`),
    onBest: (best) => {
      found.best = best.candidate;
    },
  });
  return untilDone(tuning, () =>
    found.best === undefined || options.json ? undefined : tuneResult.textSoFar(profile, found.best),
  );
}

async function requestedTraffic(options: TuneCommandOptions): Promise<SplitTraffic> {
  const { concurrency } = options;
  const read = await readTraffic(options);
  const traffic: SplitTraffic =
    concurrency === undefined
      ? read
      : { search: { ...read.search, concurrency }, heldOut: { ...read.heldOut, concurrency } };
  const classes = new Set(traffic.search.priorities);
  for (const { priorityClass } of options.slo) {
    if (priorityClass === undefined || classes.has(priorityClass)) continue;
    throw new InputError(
      classes.size === 0
        ? '--slo: expected no bounds of classes, as the requests have none; a trace gets them with --priority-shares'
        : `--slo: expected bounds of the classes that the requests have, ${[...classes].sort().join(', ')}, got class ${priorityClass}`,
    );
  }
  return traffic;
}

async function readTraffic(options: TuneCommandOptions): Promise<SplitTraffic> {
  if (options.workload !== undefined) return taskTraffic(options.workload, options.requests);
  const trace = await requestedTrace(options);
  const { priorityShares, seed } = options;
  return splitTrace(
    trace,
    options.requests,
    priorityShares && drawPriorities(trace.arrivalMs.length, priorityShares, seed),
  );
}

async function requestedTrace(options: TuneCommandOptions): Promise<Trace> {
  const { trace: file, concurrency, inputTokens, outputTokens, lengthRange } = options;
  if (file !== undefined) {
    const read = await readTraceArgument(file, options);
    if (!options.json) console.error(readingLine(file, read.reading, read.trace.arrivalMs.length));
    return read.trace;
  }
  if (concurrency !== undefined) return drawnRequests({ ...options, concurrency });
  if ((inputTokens ?? outputTokens ?? lengthRange) !== undefined)
    throw new InputError('--input-tokens, --output-tokens and --length-range need --concurrency');
  throw new InputError('nothing to tune for: name a --trace, a --workload or a --concurrency');
}

async function writePlot(path: string, result: TuneResult): Promise<void> {
  if (!result.possible) {
    console.error(`note: nothing to plot in ${path}, as no settings meet the SLO`);
    return;
  }
  await writeOutputFile(path, [rendererFor(path)(reportPlot(tuneResult.page([result])))]);
}

/** Converts a drawing to the format that the file's name asks for. */
function rendererFor(path: string): (svg: string) => string | Uint8Array {
  if (!path.endsWith('.png')) return (svg) => svg;
  const render = pngRenderer();
  if (render) return render;
  throw new InputError(
    `cannot draw ${path}: this installation has no PNG renderer (the optional native package of @resvg/resvg-js). Name an .svg file, or install the npm package servegym with its optional packages`,
    { code: 'PACKAGE_MISSING' },
  );
}

function parseKnobs(text: string): CommandKnob[] {
  return text.split(',').flatMap((part) => {
    const name = part.trim();
    if (name === 'default') return DEFAULT_KNOBS;
    if ((KNOBS as readonly string[]).includes(name)) return [name as CommandKnob];
    throw new InvalidArgumentError(`Expected \`default\` or some of ${KNOBS.join(', ')}, got \`${name}\`.`);
  });
}

function parseReplicas(text: string): [number, number] {
  const match = /^(\d+)(?:\.\.(\d+))?$/.exec(text.trim());
  const from = Number(match?.[1]);
  const to = Number(match?.[2] ?? match?.[1]);
  if (match !== null && from >= 1 && to >= from && to <= MOST_REPLICAS) return [from, to];
  throw new InvalidArgumentError(
    `Expected a number from 1 to ${MOST_REPLICAS}, or a range such as 1..8, got \`${text}\`.`,
  );
}
