import {
  chromeTrace,
  closedBatch,
  drawPriorities,
  type EngineProfile,
  repeatTrace,
  requestRows,
  type SimulatedSpan,
  type SimulationRun,
  scaleRate,
  simulateCluster,
  simulateTrace,
  summarizeRun,
  type Trace,
  takeRequests,
} from '@servegym/simulator';
import { summarize } from '@servegym/simulator/statistics';
import { drawnRequests } from '../arguments/drawn-requests.ts';
import { runningLimit } from '../arguments/engine-options.ts';
import { readingLine, readTraceArgument } from '../arguments/trace-arguments.ts';
import { InputError } from '../input-error.ts';
import { writeOutputFile } from '../output/write-output-file.ts';
import { requestFile } from './request-file.ts';
import { replicaOptions, type SimulateOptions } from './simulate-options.ts';
import type { ClassSummary, Simulation } from './simulation-report.ts';

/** Whether something is asked for that takes more of the trace than each request once, in order. */
export function needsWholeTrace(options: SimulateOptions): boolean {
  const { trace, repeatTo, sort, change, tenant, priorityShares, chromeTrace, requestsFile } = options;
  const asked = [repeatTo, change, tenant, priorityShares, chromeTrace, requestsFile, options.concurrency];
  return trace === undefined || sort === true || asked.some((each) => each !== undefined);
}

/** Serves a trace that is in memory as a whole, and writes the files that are asked for. */
export async function simulateWhole(profile: EngineProfile, options: SimulateOptions): Promise<Simulation> {
  const trace = await requestedTrace(options);
  const { weights, priorityShares } = options;
  const priorities =
    priorityShares === undefined
      ? undefined
      : drawPriorities(trace.arrivalMs.length, priorityShares, options.seed);
  const spans: SimulatedSpan[] = [];
  const start = performance.now();
  const run = served(trace, profile, priorities, options, spans);
  const wallS = (performance.now() - start) / 1000;
  if (options.chromeTrace !== undefined) {
    await writeOutputFile(options.chromeTrace, chromeTrace(trace, run, spans));
  }
  if (options.requestsFile !== undefined) {
    const rows = requestRows(trace, run, priorities);
    await writeOutputFile(options.requestsFile, requestFile(options.requestsFile, rows));
  }
  return {
    ...{ profile, weights, source: trace.source, summary: summarizeRun(run), wallS },
    ...(priorities !== undefined && { classes: classSummaries(run, priorities) }),
    beyondValidity: requestsBeyond(profile, trace),
    isClosedBatch: options.closedBatch !== undefined,
  };
}

/** Requests that are longer than what the profile was measured with. */
export function requestsBeyond({ validity }: EngineProfile, { inputTokens, outputTokens }: Trace): number {
  const longest = validity.contextTokens[1];
  return inputTokens.reduce((beyond, input, i) => beyond + (input + outputTokens[i] > longest ? 1 : 0), 0);
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

/** Serves the trace on replicas, or on a cluster of two GPUs whose settings or tenants change. */
function served(
  trace: Trace,
  profile: EngineProfile,
  priorities: Uint8Array | undefined,
  options: SimulateOptions,
  spans: SimulatedSpan[],
): SimulationRun {
  const watched = {
    priorities,
    ...(options.chromeTrace !== undefined && { onIterations: (span: SimulatedSpan) => spans.push(span) }),
  };
  const changes = [...(options.change ?? []), ...(options.tenant ?? [])];
  if (changes.length === 0) {
    return simulateTrace(trace, { ...replicaOptions(profile, options), ...watched });
  }
  const { weights, kvBudgetFraction, speculationDepth, policy, split } = options;
  if (split !== undefined && (split.prefill !== 1 || split.decode !== 1)) {
    throw new InputError(
      `--change and --tenant take two GPUs: expected --split 1:1 with them, got ${split.prefill}:${split.decode}`,
    );
  }
  const { maxNumBatchedTokens, seed, acceptance, prefixCaching, concurrency } = options;
  return simulateCluster(trace, {
    ...{ profile, maxNumBatchedTokens, seed, acceptance, prefixCaching, concurrency, changes, ...watched },
    config: {
      ...{ weights, kvBudgetFraction, speculationDepth, split: split !== undefined },
      maxNumSeqs: runningLimit(options),
      schedulingPolicy: policy,
    },
  });
}

async function requestedTrace(options: SimulateOptions): Promise<Trace> {
  const { trace: file, closedBatch: batch, inputTokens, outputTokens } = options;
  if (file === undefined && batch === undefined && options.concurrency !== undefined) {
    return drawnRequests({ ...options, concurrency: options.concurrency });
  }
  if (options.requests !== undefined || options.lengthRange !== undefined) {
    throw new InputError('--requests and --length-range need --concurrency, without a --trace');
  }
  if (batch !== undefined) {
    if (inputTokens === undefined || outputTokens === undefined) {
      throw new InputError('--closed-batch needs --input-tokens and --output-tokens');
    }
    return closedBatch(batch, inputTokens, outputTokens);
  }
  if (inputTokens !== undefined || outputTokens !== undefined) {
    throw new InputError(
      '--input-tokens and --output-tokens need --closed-batch, or --concurrency without a --trace',
    );
  }
  if (file === undefined)
    throw new InputError('nothing to serve: name a --trace, a --closed-batch or a --concurrency');
  const read = await readTraceArgument(file, options);
  if (!options.json) console.error(readingLine(file, read.reading, read.trace.arrivalMs.length));
  const trace = scaleRate(read.trace, options.rateScale);
  if (options.repeatTo !== undefined) return repeatTrace(trace, options.repeatTo);
  return options.limit === undefined ? trace : takeRequests(trace, options.limit);
}
