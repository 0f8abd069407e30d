import { type Deployment, longestRequest, requestsWithin, splitParts } from '@servegym/operators';
import {
  chromeTrace,
  drawPriorities,
  type Policy,
  type PrefillDecodeSplit,
  pickRequests,
  ROUTER_POLICIES,
  repeatTrace,
  requestRows,
  type SimulatedSpan,
  type SimulationOptions,
  type SimulationRun,
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
import {
  MOST_REQUESTS,
  openTraffic,
  readingLine,
  readTraffic,
  trafficOptions,
  trafficWord,
} from '../arguments/traffic.ts';
import { defineCommand, type OptionTable, type OptionValues } from '../command-table.ts';
import { InputError } from '../failure.ts';
import { requireWritable, writeOutputFile } from '../files.ts';
import { printResult } from '../output/print-result.ts';
import { importPolicy } from '../policy/import-policy.ts';
import {
  type ClassSummary,
  requestFile,
  type Simulation,
  simulationJson,
  simulationText,
} from './simulation-report.ts';

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
  repeatTo: {
    ...whole('<n>', 1, MOST_REQUESTS, 'play the traffic again and again, until n requests'),
    conflicts: ['requests'],
  },
  chromeTrace: { value: '<file.json>', help: 'write the run for Perfetto (ui.perfetto.dev)' },
  requestsFile: { value: '<file>', help: 'write a row for each request: .jsonl, .parquet, else CSV' },
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
  await requireWritable(values.chromeTrace);
  await requireWritable(values.requestsFile);
  const simulation = await (needsWholeTrace(values)
    ? simulateWhole(deployment, values)
    : simulateAsRead(deployment, values));
  for (const flag of deployment.notSimulated) console.error(`not simulated: ${flag}`);
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
  const { repeatTo, priorityShares, chromeTrace: spans, requestsFile } = values;
  const asked = [repeatTo, priorityShares, spans, requestsFile].some((each) => each !== undefined);
  return traffic.kind !== 'file' || traffic.concurrency !== undefined || asked;
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
  const serve = (requests: Trace) => {
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
    ...{ wallS: wallMs / 1000, isClosedBatch: false },
  };
}

/** Serves traffic that is in memory as a whole, and writes the files that are asked for. */
async function simulateWhole(deployment: Deployment, values: Values): Promise<Simulation> {
  const { repeatTo, requests, priorityShares, seed } = values;
  const opened = await openTraffic(values.traffic, { ...values, quiet: values.json });
  const scaled = scaleRate(opened.trace, values.rateScale);
  const whole =
    repeatTo !== undefined
      ? repeatTrace(scaled, repeatTo)
      : requests === undefined
        ? scaled
        : takeRequests(scaled, requests);
  const classes =
    priorityShares === undefined
      ? opened.priorities
      : drawPriorities(whole.arrivalMs.length, priorityShares, seed);
  const { picked, refused } = requestsWithin(whole, longestRequest(deployment));
  const trace = refused.requests === 0 ? whole : pickRequests(whole, picked);
  const priorities = classes && Uint8Array.from(picked, (i) => classes[i]);
  const spans: SimulatedSpan[] = [];
  const start = performance.now();
  const run = simulateTrace(trace, {
    ...engineOptions(deployment, values),
    ...{ priorities, concurrency: opened.concurrency },
    ...(values.chromeTrace !== undefined && { onIterations: (span: SimulatedSpan) => spans.push(span) }),
  });
  const wallS = (performance.now() - start) / 1000;
  if (values.chromeTrace !== undefined) {
    await writeOutputFile(values.chromeTrace, chromeTrace(trace, run, spans));
  }
  if (values.requestsFile !== undefined) {
    const rows = requestRows(trace, run, priorities);
    await writeOutputFile(values.requestsFile, requestFile(values.requestsFile, rows));
  }
  const { profile, settings } = deployment;
  return {
    ...{ profile, weights: settings.weights, source: trace.source, summary: summarizeRun(run), wallS },
    ...(priorities !== undefined && { classes: classSummaries(run, priorities) }),
    ...{ beyondValidity: requestsBeyond(profile, trace), refused },
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
