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
import { snakeCase } from '@servegym/operators/report';
import {
  drawPriorities,
  type EngineProfile,
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
import { above, parseShares, whole } from '../arguments/options.ts';
import { openTraffic, readingLine, readTraffic, trafficOptions, trafficWord } from '../arguments/traffic.ts';
import { defineCommand, type OptionTable, type OptionValues } from '../command-table.ts';
import { InputError } from '../failure.ts';
import { writeOutputFile } from '../files.ts';
import { facts, printResult, table } from '../output/print-result.ts';
import { importPolicy } from '../policy/import-policy.ts';

/** A simulation and what it was made of. */
interface Simulation {
  readonly profile: EngineProfile;
  readonly weights: string;
  /** Source of the requests. */
  readonly source: string;
  readonly summary: SimulationSummary;
  /** Of each priority class that has completed requests, when they have any. */
  readonly classes?: readonly ClassSummary[];
  /** Requests longer than what the profile was measured with. */
  readonly beyondValidity: number;
  /** Requests longer than what the engines take. */
  readonly refused: RefusedRequests;
  /** What of the traffic is not simulated. */
  readonly notes: readonly string[];
  /** Time the simulation took, without reading the trace, s. */
  readonly wallS: number;
  /** Whether all requests were there at time zero. */
  readonly isClosedBatch: boolean;
}

/** Latencies of a priority class, ms. */
interface ClassSummary {
  readonly priority: number;
  readonly completed: number;
  readonly ttft: Summary;
  readonly e2e: Summary;
}

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

/** Output of `simulate` without `--json`. */
function simulationText(simulation: Simulation): string {
  const { profile, weights, source, summary: run, classes = [], wallS, isClosedBatch } = simulation;
  const { preemptions, cachedTokens, loadedTokens, prefillTokens } = run.counters;
  const simulatedS = run.simulatedMs / 1000;
  const poolTokens = kvTokens(profile, run.kvBlocks);
  const accepted = acceptance(run);
  const ofPrompts = (tokens: number, what: string) =>
    tokens > 0
      ? `${((100 * tokens) / (cachedTokens + loadedTokens + prefillTokens)).toFixed(1)} % of the prompt tokens ${what}`
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
      [
        'speculation',
        accepted === null ? undefined : `${(100 * accepted).toFixed(1)} % of the draft tokens accepted`,
      ],
    ]),
    '',
    ...table<readonly [name: string, summary: Summary]>(
      [
        ['TTFT, ms', run.ttft],
        ['TPOT, ms', run.tpot],
        ['end to end, ms', run.e2e],
        ...classes.map(({ priority, ttft }) => [`TTFT of class ${priority}, ms`, ttft] as const),
      ],
      [
        ['', ([name]) => name],
        ['mean', ([, { mean }]) => milliseconds(mean)],
        ['p50', ([, { p50 }]) => milliseconds(p50)],
        ['p90', ([, { p90 }]) => milliseconds(p90)],
        ['p99', ([, { p99 }]) => milliseconds(p99)],
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

function throughput(run: SimulationSummary): number {
  return run.simulatedMs === 0 ? 0 : (1000 * run.counters.outputTokens) / run.simulatedMs;
}

function acceptance({ counters }: SimulationSummary): number | null {
  return counters.draftTokens === 0 ? null : counters.acceptedTokens / counters.draftTokens;
}

function milliseconds(ms: number): string {
  if (Number.isNaN(ms)) return '-';
  return ms < 100 ? ms.toFixed(2) : count(Math.round(ms));
}

function seconds(s: number): string {
  return s < 1 ? `${(1000 * s).toFixed(1)} ms` : `${s.toFixed(s < 100 ? 2 : 1)} s`;
}

function count(value: number): string {
  return value.toLocaleString('en-US');
}

/** Requests as a file of the kind that its name ends in: `.jsonl`, or CSV with a header otherwise. */
function requestFile(file: string, rows: Iterable<RequestRow>): Iterable<string> {
  return file.endsWith('.jsonl') ? jsonLines(rows) : csvLines(rows);
}

function* jsonLines(rows: Iterable<RequestRow>): Generator<string, void, void> {
  for (const row of rows) yield `${JSON.stringify(row)}\n`;
}

function* csvLines(rows: Iterable<RequestRow>): Generator<string, void, void> {
  yield `${REQUEST_COLUMNS.join(',')}\n`;
  for (const row of rows) yield `${REQUEST_COLUMNS.map((column) => row[column] ?? '').join(',')}\n`;
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
  priorityShares: {
    value: '<shares>',
    parse: parseShares,
    help: 'draw priority classes, the most urgent first: 0.2,0.8',
  },
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

/** `servegym simulate`: traffic on a simulated deployment. */
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
  const deployment = withBandwidth(await readDeployment(values.deployment, values), values);
  const simulation = await (needsWholeTrace(values)
    ? simulateWhole(deployment, values)
    : simulateAsRead(deployment, values));
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

/** Options of the engines. */
function engineOptions(deployment: Deployment, values: Values): SimulationOptions {
  const { profile, settings, engines, kvBlocks } = deployment;
  const { maxNumBatchedTokens, prefixCaching } = settings;
  const { acceptance, seed, functions: policy, metricsInterval: metricsIntervalMs, clientTimeout } = values;
  const { replicas = engines, router = deployment.router ?? 'round_robin' } = values;
  const split = values.split ?? (settings.split === false ? undefined : ofEngines(settings.split, replicas));
  return {
    ...servingConfig(deployment),
    ...{
      profile,
      maxNumBatchedTokens,
      kvBlocks,
      acceptance,
      prefixCaching,
      router,
      seed,
      policy,
      metricsIntervalMs,
    },
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

/** Whether something is asked for that takes more of the traffic than each request of a file once, in order. */
function needsWholeTrace({ traffic, ...values }: Values): boolean {
  const { priorityShares, requestsFile } = values;
  const asked = [priorityShares, requestsFile].some((each) => each !== undefined);
  const isDrawn = traffic.kind !== 'file' || traffic.adapters !== undefined;
  return isDrawn || traffic.concurrency !== undefined || asked;
}

/** Serves the requests of a file as they are read: what is in memory are the latencies, not the trace. */
async function simulateAsRead(deployment: Deployment, values: Values): Promise<Simulation> {
  const { traffic, rateScale, requests: most = Number.POSITIVE_INFINITY, json } = values;
  const { profile, settings } = deployment;
  const { file } = traffic as Extract<Values['traffic'], { kind: 'file' }>;
  const simulation = new TraceSimulation(engineOptions(deployment, values));
  const limit = longestRequest(deployment);
  let beyondValidity = 0;
  let refused = { requests: 0, longest: 0, limit };
  let read = 0;
  let served = 0;
  let wallMs = 0;
  const notes = new Set<string>();
  const serve = (whole: Trace) => {
    const requests = withAdapters(whole, deployment);
    read += requests.arrivalMs.length;
    const left = most - served;
    if (left === 0) return;
    const taken = scaleRate(
      left < requests.arrivalMs.length ? takeRequests(requests, left) : requests,
      rateScale,
    );
    served += taken.arrivalMs.length;
    const { picked, refused: more } = requestsWithin(taken, limit);
    const longest = Math.max(refused.longest, more.longest);
    refused = { requests: refused.requests + more.requests, longest, limit };
    const taking = more.requests === 0 ? taken : pickRequests(taken, picked);
    beyondValidity += requestsBeyond(profile, taking);
    for (const note of adapterNotes(taking, deployment)) notes.add(note);
    const start = performance.now();
    if (picked.length > 0) simulation.take(taking);
    wallMs += performance.now() - start;
  };
  const { trace: rest, reading } = await readTraffic(file, { onRequests: serve });
  serve(rest);
  if (!json) console.error(readingLine(file, reading, read));
  const start = performance.now();
  const summary = simulation.finish();
  wallMs += performance.now() - start;
  return {
    ...{ profile, weights: settings.weights, source: rest.source, summary, beyondValidity, refused },
    notes: [...notes],
    ...{ wallS: wallMs / 1000, isClosedBatch: false },
  };
}

/** Serves traffic that is in memory as a whole, and writes the files that are asked for. */
async function simulateWhole(deployment: Deployment, values: Values): Promise<Simulation> {
  const { requests, priorityShares, seed } = values;
  const opened = await openTraffic(values.traffic, { ...values, quiet: values.json });
  const scaled = scaleRate(withAdapters(opened.trace, deployment), values.rateScale);
  const whole = requests === undefined ? scaled : takeRequests(scaled, requests);
  const classes =
    priorityShares === undefined
      ? opened.priorities
      : drawPriorities(whole.arrivalMs.length, priorityShares, seed);
  const { picked, refused } = requestsWithin(whole, longestRequest(deployment));
  const trace = refused.requests === 0 ? whole : pickRequests(whole, picked);
  const priorities = classes && Uint8Array.from(picked, (i) => classes[i]);
  const start = performance.now();
  const run = simulateTrace(trace, {
    ...engineOptions(deployment, values),
    ...{ priorities, concurrency: opened.concurrency },
  });
  const wallS = (performance.now() - start) / 1000;
  if (values.requestsFile !== undefined) {
    const rows = requestRows(trace, run, priorities);
    await writeOutputFile(values.requestsFile, requestFile(values.requestsFile, rows));
  }
  const { profile, settings } = deployment;
  return {
    ...{ profile, weights: settings.weights, source: trace.source, summary: summarizeRun(run), wallS },
    ...(priorities !== undefined && { classes: classSummaries(run, priorities) }),
    ...{ beyondValidity: requestsBeyond(profile, trace), refused, notes: adapterNotes(trace, deployment) },
    isClosedBatch: opened.isBatch,
  };
}

/** Requests that are longer than what the profile was measured with. */
function requestsBeyond({ validity }: Deployment['profile'], { inputTokens, outputTokens }: Trace): number {
  const [, longest] = validity.contextTokens;
  let beyond = 0;
  for (let i = 0; i < inputTokens.length; i += 1) if (inputTokens[i] + outputTokens[i] > longest) beyond += 1;
  return beyond;
}

/** Latencies of each priority class that has completed requests. */
function classSummaries(run: SimulationRun, priorities: Uint8Array): ClassSummary[] {
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
