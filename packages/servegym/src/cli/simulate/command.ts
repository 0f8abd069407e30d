import {
  adapterNotes,
  type Deployment,
  longestRequest,
  type RefusedRequests,
  refusedText,
  requestsWithin,
  splitParts,
  withAdapters,
} from '@servegym/operators';
import { percent, snakeCase } from '@servegym/operators/report';
import {
  drawPriorities,
  kvTokens,
  type Policy,
  type PrefillDecodeSplit,
  pickRequests,
  REQUEST_COLUMNS,
  type RequestRow,
  ROUTER_POLICIES,
  requestRows,
  type SimulationOptions,
  type SimulationRun,
  type SimulationSummary,
  type Summary,
  scaleRate,
  simulateTrace,
  summarizeRun,
  type Trace,
  TraceSimulation,
  takeRequests,
} from '@servegym/simulator';
import { summarize } from '@servegym/simulator/statistics';
import { InvalidArgumentError } from 'commander';
import { deploymentOptions, readDeployment, servingConfig } from '../arguments/deployment.ts';
import { above, whole } from '../arguments/options.ts';
import {
  openTraffic,
  priorityShares,
  readingLine,
  readTraffic,
  trafficOptions,
  trafficWord,
} from '../arguments/traffic.ts';
import { defineCommand, type OptionTable, type OptionValues } from '../command-table.ts';
import { InputError } from '../failure.ts';
import { writeOutputFile } from '../files.ts';
import { type Column, facts, printResult, table } from '../output/print-result.ts';
import { importPolicy } from '../policy/import-policy.ts';

type Simulation = ReturnType<typeof simulated>;
type NamedSummary = readonly [name: string, summary: Summary];

/** The object that `simulate --json` prints. Latencies in ms; `null` where nothing was measured. */
function simulationJson(simulation: Simulation) {
  const { profile, weights, source, summary: run, classes, beyondValidity, refused, wallS } = simulation;
  const { simulatedMs, ttft, tpot, e2e, counters, kvBlocks, requests, completed, rejected } = run;
  const simulatedS = simulatedMs / 1000;
  return snakeCase({
    ...{ profile: profile.name, weights, trace: source, requests, completed, rejected },
    ...{ aborted: run.aborted, simulatedS },
    makespanS: simulation.isClosedBatch ? simulatedS : undefined,
    ...{ wallS, requestsPerWallS: requests / wallS, ttftMs: ttft, tpotMs: tpot, e2eMs: e2e },
    ...{ throughputTps: throughput(run), preemptions: counters.preemptions, iterations: counters.iterations },
    ...{ outputTokens: counters.outputTokens, prefillTokens: counters.prefillTokens },
    cachedPrefillTokens: counters.cachedTokens,
    loadedPrefillTokens: profile.hostKv === undefined ? undefined : counters.loadedTokens,
    ...{ specAcceptanceRate: acceptance(run), kvBlocks, requestsBeyondValidity: beyondValidity, refused },
    classes: classes?.map((each) => ({
      ...{ priority: each.priority, completed: each.completed, ttftMs: each.ttft, e2eMs: each.e2e },
    })),
    policy: run.policy,
  });
}

function simulationText(simulation: Simulation): string {
  const { profile, weights, source, summary: run, classes = [], wallS, isClosedBatch } = simulation;
  const { preemptions, cachedTokens, loadedTokens, prefillTokens } = run.counters;
  const simulatedS = run.simulatedMs / 1000;
  const poolTokens = kvTokens(profile, run.kvBlocks);
  const accepted = acceptance(run);
  const ofPrompts = (tokens: number, what: string) =>
    tokens > 0
      ? `${percent(tokens / (cachedTokens + loadedTokens + prefillTokens))} of the prompt tokens ${what}`
      : undefined;
  return [
    `${profile.name}, ${weights} weights, ${source}`,
    '',
    ...facts([
      ['requests', `${count(run.completed)} completed, ${count(run.rejected)} rejected`],
      ['by clients', run.aborted === undefined ? undefined : `${count(run.aborted)} given up`],
      ['by the policy', run.policy && `${count(run.policy.refused)} refused`],
      ['simulated', `${seconds(simulatedS)}${isClosedBatch ? ' (makespan)' : ''}`],
      ['wall', `${seconds(wallS)} (${count(Math.round(run.requests / wallS))} requests/s)`],
      ['throughput', `${throughput(run).toFixed(1)} output tokens/s`],
      ['preemptions', count(preemptions)],
      ['KV pool', `${count(run.kvBlocks)} blocks, ${count(poolTokens)} tokens`],
      ['prefix cache', ofPrompts(cachedTokens, 'found')],
      ['host memory', ofPrompts(loadedTokens, 'loaded from it')],
      ['speculation', accepted === null ? undefined : `${percent(accepted)} of the draft tokens accepted`],
    ]),
    '',
    ...table<NamedSummary>(
      [
        ['TTFT, ms', run.ttft],
        ['TPOT, ms', run.tpot],
        ['end to end, ms', run.e2e],
        ...classes.map(({ priority, ttft }) => [`TTFT of class ${priority}, ms`, ttft] as const),
      ],
      [
        ['', ([name]) => name],
        ...(['mean', 'p50', 'p90', 'p99'] as const).map(
          (key): Column<NamedSummary> => [key, ([, summary]) => milliseconds(summary[key])],
        ),
      ],
    ),
    ...notes(simulation),
  ].join('\n');
}

function notes({ profile, weights, summary: run, refused, beyondValidity: beyond }: Simulation): string[] {
  const variant = Object.entries(profile.weights).find(([precision]) => precision === weights)?.[1];
  const [, longest] = profile.validity.contextTokens;
  const lines = [
    refused.requests > 0 && refusedText(refused),
    variant?.status === 'estimated' && `${weights} of this profile is estimated from ${variant.source}`,
    ...(run.policy?.faults ?? []).map(
      ({ message, count: times }) => `${message}; the default decided, ${count(times)} times`,
    ),
    run.rejected > 0 && `${count(run.rejected)} requests can never fit the KV pool`,
    beyond > 0 &&
      `${count(beyond)} requests are longer than the ${count(longest)} tokens the profile was measured with`,
  ].filter((line) => line !== false);
  return lines.length === 0 ? [] : ['', ...lines.map((line) => `note: ${line}`)];
}

const throughput = ({ simulatedMs, counters }: SimulationSummary) =>
  simulatedMs === 0 ? 0 : (1000 * counters.outputTokens) / simulatedMs;
const acceptance = ({ counters: { draftTokens, acceptedTokens } }: SimulationSummary) =>
  draftTokens === 0 ? null : acceptedTokens / draftTokens;
const count = (value: number) => value.toLocaleString('en-US');
const milliseconds = (ms: number) =>
  Number.isNaN(ms) ? '-' : ms < 100 ? ms.toFixed(2) : count(Math.round(ms));
const seconds = (s: number) => (s < 1 ? `${(1000 * s).toFixed(1)} ms` : `${s.toFixed(s < 100 ? 2 : 1)} s`);

/** Requests as a file of the kind that its name ends in: `.jsonl`, or CSV with a header otherwise. */
function* requestLines(file: string, rows: Iterable<RequestRow>): Generator<string> {
  const isJson = file.endsWith('.jsonl');
  if (!isJson) yield `${REQUEST_COLUMNS.join(',')}\n`;
  for (const row of rows)
    yield `${isJson ? JSON.stringify(row) : REQUEST_COLUMNS.map((column) => row[column] ?? '').join(',')}\n`;
}

const options = {
  ...deploymentOptions,
  replicas: whole('<n>', 1, 1024, 'engines that share the traffic'),
  router: { value: '<policy>', choices: ROUTER_POLICIES, help: 'default: round_robin' },
  policy: {
    value: '<file>',
    help: 'your module that routes, admits and orders requests (.ts, .js, .py)',
  },
  metricsInterval: above('<ms>', 0, 3.6e6, 'between two looks at the engines (default: one at each request)'),
  split: {
    value: '[prefill:decode]',
    preset: '1:1',
    parse: parseSplit,
    conflicts: ['replicas'],
    help: 'engines that prefill, and engines that decode',
  },
  acceptance: { value: '<text>', help: 'text that drafts are accepted as in (default: sharegpt)' },
  priorityShares,
  clientTimeout: above('<s>', 0, 86_400, 'clients give up requests that are not complete after s seconds'),
  kvOffloadingBandwidth: above('<GB/s>', 0, 1e6, 'host to GPU (default: of the profile, else 25)'),
  ...trafficOptions,
  requestsFile: { value: '<file>', writes: true, help: 'write a row for each request: .jsonl, else CSV' },
  json: { help: 'print one JSON object' },
} as const satisfies OptionTable;

type SimulateOptions = OptionValues<typeof options>;
type Values = SimulateOptions & {
  readonly functions?: Policy;
  readonly traffic: ReturnType<typeof trafficWord.traffic.parse>;
};

export const simulateCommand = () =>
  defineCommand({
    words: trafficWord,
    options,
    after: `Examples:
  servegym simulate log.csv --deployment 'vllm serve Qwen/Qwen3-32B -tp 2' --gpu h100
  servegym simulate closed:32x1024:1024~0.8 --profile mine.json --requests 320
  servegym simulate log.csv --profile h100-80gb-llama-3-8b --replicas 4 --policy my-router.ts`,
    action: simulate,
  });

async function simulate(given: Values): Promise<void> {
  const functions = given.policy === undefined ? undefined : await importPolicy(given.policy);
  const values = { ...given, functions };
  const { traffic, priorityShares, requestsFile } = values;
  const deployment = withBandwidth(await readDeployment(values.deployment, values), values);
  // What takes more of the traffic than each request of a file once, in order, takes it as a whole.
  const isRead =
    traffic.kind === 'file' && traffic.adapters === undefined && traffic.concurrency === undefined;
  const simulation =
    isRead && priorityShares === undefined && requestsFile === undefined
      ? await simulateAsRead(traffic.file, deployment, values)
      : await simulateWhole(deployment, values);
  for (const flag of [...deployment.notSimulated, ...simulation.notes])
    console.error(`not simulated: ${flag}`);
  printResult(values.json, simulation, { json: simulationJson, text: simulationText });
}

/** @throws InputError for a bandwidth without memory of the host */
function withBandwidth(deployment: Deployment, { kvOffloadingBandwidth: own }: SimulateOptions): Deployment {
  const { profile } = deployment;
  if (own === undefined) return deployment;
  if (profile.hostKv === undefined)
    throw new InputError(
      '--kv-offloading-bandwidth needs --kv-offloading-size in the deployment, or a profile with hostKv',
    );
  return { ...deployment, profile: { ...profile, hostKv: { ...profile.hostKv, gigabytesPerSecond: own } } };
}

function engineOptions(deployment: Deployment, values: Values): SimulationOptions {
  const { profile, settings, engines, kvBlocks } = deployment;
  const { maxNumBatchedTokens, prefixCaching } = settings;
  const { acceptance, seed, functions: policy, metricsInterval: metricsIntervalMs, clientTimeout } = values;
  const { replicas = engines, router = deployment.router ?? 'round_robin' } = values;
  const split = values.split ?? (settings.split === false ? undefined : ofEngines(settings.split, replicas));
  return {
    ...{ ...servingConfig(deployment), profile, maxNumBatchedTokens, kvBlocks, acceptance, prefixCaching },
    ...{ router, seed, policy, metricsIntervalMs },
    ...(clientTimeout !== undefined && { clientTimeoutMs: 1000 * clientTimeout }),
    ...(split === undefined ? { replicas } : { split }),
  };
}

/** Engines of a plan by their roles. */
function ofEngines(ratio: Parameters<typeof splitParts>[0], engines: number) {
  const { prefill, decode } = splitParts(ratio);
  const groups = engines / (prefill + decode);
  return { prefill: prefill * groups, decode: decode * groups };
}

/** The requests of a traffic that the engines take, counted over the pieces in which they are read. */
class Intake {
  read = 0;
  /** Requests longer than what the profile was measured with. */
  beyondValidity = 0;
  /** Requests longer than what the engines take. */
  refused: RefusedRequests;
  /** What of the traffic is not simulated. */
  readonly notes = new Set<string>();
  readonly deployment: Deployment;
  readonly #rateScale: number;
  #left: number;

  constructor(deployment: Deployment, { requests = Number.POSITIVE_INFINITY, rateScale }: SimulateOptions) {
    this.deployment = deployment;
    this.#left = requests;
    this.#rateScale = rateScale;
    this.refused = { requests: 0, longest: 0, limit: longestRequest(deployment) };
  }

  /** Those of a piece: all that are wanted, the places of the ones that are taken among them, and these; `null` for none. */
  take(piece: Trace) {
    const { deployment, refused } = this;
    const whole = scaleRate(withAdapters(piece, deployment), this.#rateScale);
    this.read += whole.arrivalMs.length;
    if (this.#left === 0) return null;
    const wanted = this.#left < whole.arrivalMs.length ? takeRequests(whole, this.#left) : whole;
    this.#left -= wanted.arrivalMs.length;
    const { picked, refused: more } = requestsWithin(wanted, refused.limit);
    const longest = Math.max(refused.longest, more.longest);
    this.refused = { ...refused, requests: refused.requests + more.requests, longest };
    const taken = more.requests === 0 ? wanted : pickRequests(wanted, picked);
    this.beyondValidity += requestsBeyond(deployment.profile, taken);
    for (const note of adapterNotes(taken, deployment)) this.notes.add(note);
    return { wanted, picked, taken };
  }
}

function simulated(
  { deployment: { profile, settings }, beyondValidity, refused, notes }: Intake,
  made: {
    readonly source: string;
    readonly summary: SimulationSummary;
    /** Time the simulation took, without reading the trace, ms. */
    readonly wallMs: number;
    /** Of each priority class that has completed requests, when they have any. */
    readonly classes?: ReturnType<typeof classSummaries> | undefined;
    /** Whether all requests were there at time zero. */
    readonly isClosedBatch?: boolean;
  },
) {
  const { weights } = settings;
  return { ...made, profile, weights, beyondValidity, refused, notes, wallS: made.wallMs / 1000 };
}

/** Serves the requests of a file as they are read: what is in memory are the latencies, not the trace. */
async function simulateAsRead(file: string, deployment: Deployment, values: Values): Promise<Simulation> {
  const simulation = new TraceSimulation(engineOptions(deployment, values));
  const intake = new Intake(deployment, values);
  let wallMs = 0;
  const timed = <Result>(work: () => Result): Result => {
    const start = performance.now();
    const result = work();
    wallMs += performance.now() - start;
    return result;
  };
  const serve = (piece: Trace) => {
    const { taken } = intake.take(piece) ?? {};
    if (taken !== undefined && taken.arrivalMs.length > 0) timed(() => simulation.take(taken));
  };
  const { trace: rest, reading } = await readTraffic(file, { onRequests: serve });
  serve(rest);
  if (!values.json) console.error(readingLine(file, reading, intake.read));
  const summary = timed(() => simulation.finish());
  return simulated(intake, { source: rest.source, summary, wallMs });
}

/** Serves traffic that is in memory as a whole, and writes the files that are asked for. */
async function simulateWhole(deployment: Deployment, values: Values): Promise<Simulation> {
  const { priorityShares, seed, requestsFile } = values;
  const opened = await openTraffic(values.traffic, { ...values, quiet: values.json });
  const intake = new Intake(deployment, values);
  const { wanted, picked, taken: trace } = intake.take(opened.trace)!;
  const classes =
    priorityShares === undefined
      ? opened.priorities
      : drawPriorities(wanted.arrivalMs.length, priorityShares, seed);
  const priorities = classes && Uint8Array.from(picked, (i) => classes[i]);
  const start = performance.now();
  const run = simulateTrace(trace, {
    ...engineOptions(deployment, values),
    ...{ priorities, concurrency: opened.concurrency },
  });
  const wallMs = performance.now() - start;
  if (requestsFile !== undefined)
    await writeOutputFile(requestsFile, requestLines(requestsFile, requestRows(trace, run, priorities)));
  return simulated(intake, {
    ...{ source: trace.source, summary: summarizeRun(run), wallMs, isClosedBatch: opened.isBatch },
    classes: priorities && classSummaries(run, priorities),
  });
}

/** Requests that are longer than what the profile was measured with. */
function requestsBeyond({ validity }: Deployment['profile'], { inputTokens, outputTokens }: Trace): number {
  const [, longest] = validity.contextTokens;
  return inputTokens.reduce((sum, input, i) => sum + Number(input + outputTokens[i] > longest), 0);
}

/** Latencies of each priority class that has completed requests, ms. */
function classSummaries(run: SimulationRun, priorities: Uint8Array) {
  const of = (priority: number, values: Float64Array) =>
    values.filter((_, i) => priorities[run.ids[i]] === priority);
  return [...new Set(priorities)]
    .sort((a, b) => a - b)
    .map((priority) => ({ priority, ttft: of(priority, run.ttftMs), e2e: of(priority, run.e2eMs) }))
    .filter(({ ttft }) => ttft.length > 0)
    .map(({ priority, ttft, e2e }) => ({
      ...{ priority, completed: ttft.length },
      ...{ ttft: summarize(ttft), e2e: summarize(e2e) },
    }));
}

/** Parses `2:1`, the engines that prefill and those that decode. */
export function parseSplit(text: string): PrefillDecodeSplit {
  const [, prefill, decode] = /^([1-9]\d{0,3}):([1-9]\d{0,3})$/.exec(text) ?? [];
  if (decode === undefined) {
    throw new InvalidArgumentError(`Expected \`<prefill engines>:<decode engines>\`, got \`${text}\`.`);
  }
  return { prefill: Number(prefill), decode: Number(decode) };
}
