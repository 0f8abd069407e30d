import { counted } from '../reporting/counted.ts';
import { quoteField, type SimulatorError, traceError } from '../simulator-error.ts';
import { type ReadTrace, RequestReader } from './request-reader.ts';
import type { TraceOptions } from './trace.ts';

/** A request of a benchmark of a real server, as the client saw it. */
interface BenchmarkRequest {
  /** When it was sent, s, on a clock that all requests of the load share; `null` where the benchmark kept no times. */
  readonly startS: number | null;
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** Time to the first token, s; `null` where it was not kept. */
  readonly ttftS: number | null;
  /** Time to the last token, s; `null` where it was not kept. */
  readonly e2eS: number | null;
}

/** One load of a benchmark: its requests that were answered. */
interface BenchmarkLoad {
  /** Its name in the benchmark. */
  readonly name: string;
  readonly requests: readonly BenchmarkRequest[];
  /** Requests that failed or were cut off. */
  readonly failed: number;
  /** Clients that each send a request when the one before has ended; `null` where requests had their own times. */
  readonly concurrency: number | null;
}

/** Tool that wrote the result, and its loads. */
export interface BenchmarkResult {
  readonly tool: 'vLLM' | 'GuideLLM';
  readonly loads: readonly BenchmarkLoad[];
}

/** A JSON object. */
export type Entry = Readonly<Record<string, unknown>>;

/** Whether parsed JSON looks like a result that `readBenchmarkResult` takes. */
export function isBenchmarkResult(value: unknown): boolean {
  return isEntry(value) && (Array.isArray(value.benchmarks) || isOfVllm(value));
}

const isOfVllm = (value: Entry) => Array.isArray(value.input_lens) || 'total_input_tokens' in value;

/**
 * Reads parsed JSON that `vllm bench serve --save-result --save-detailed` or `guidellm benchmark --output-path x.json`
 * has written.
 *
 * @throws {SimulatorError} `TRACE_BENCHMARK` naming what is missing.
 */
export function readBenchmarkResult(value: unknown, source: string): BenchmarkResult {
  if (isEntry(value) && Array.isArray(value.benchmarks)) return readGuideLlm(value.benchmarks, source);
  if (isEntry(value) && isOfVllm(value)) return { tool: 'vLLM', loads: [readVllm(value, source)] };
  const got = isEntry(value)
    ? `an object with ${Object.keys(value).slice(0, 8).join(', ')}`
    : quoteField(value);
  throw refusal(source, 'the result of `vllm bench serve` or of GuideLLM', got);
}

/**
 * The requests of a benchmark as a trace.
 *
 * @param load Number of the load, from 1; needed where there are several.
 * @throws {SimulatorError} `TRACE_BENCHMARK` when there are several loads, or no times.
 */
export function benchmarkTrace(
  result: BenchmarkResult,
  source: string,
  { load, options = {} }: { readonly load?: number; readonly options?: TraceOptions } = {},
): ReadTrace {
  const { loads, tool } = result;
  if (load === undefined && loads.length > 1) {
    const names = loads
      .map(({ name, requests }, i) => `${i + 1}: ${name} (${counted(requests.length, 'request')})`)
      .join('; ');
    throw refusal(source, 'the number of one of its loads', names, 'load');
  }
  const chosen = loads[(load ?? 1) - 1];
  if (chosen === undefined) {
    throw refusal(source, `a load from 1 to ${loads.length}`, String(load));
  }
  const reader = new RequestReader(['start_time', 'input_tokens', 'output_tokens'], {
    kind: `result of ${tool}`,
    source,
    line: null,
    // They are listed as they ended.
    options: { prefixBlockTokens: options.prefixBlockTokens, unanswered: 'skip', timeUnit: 's', sort: true },
  });
  for (const [i, { startS, inputTokens, outputTokens }] of chosen.requests.entries()) {
    const where = ', `start_times`, which vLLM 0.11 and newer write with --save-detailed';
    if (startS === null)
      throw refusal(source, `the times of the requests${tool === 'vLLM' ? where : ''}`, 'none');
    reader.add(i + 1, startS, inputTokens, outputTokens);
  }
  const { trace, reading } = reader.end();
  return { trace, reading: { ...reading, unanswered: reading.unanswered + chosen.failed } };
}

function readVllm(entry: Entry, source: string): BenchmarkLoad {
  const inputs = entry.input_lens;
  const outputs = entry.output_lens;
  if (!Array.isArray(inputs) || !Array.isArray(outputs) || inputs.length !== outputs.length) {
    throw refusal(
      source,
      '`input_lens` and `output_lens` of each request, which vllm bench serve writes with --save-detailed',
      quoteField(Object.keys(entry).join(', ')),
    );
  }
  const starts = listOf(entry.start_times, inputs.length);
  const ttfts = listOf(entry.ttfts, inputs.length);
  const itls = listOf(entry.itls, inputs.length);
  const errors = listOf(entry.errors, inputs.length);
  const requests: BenchmarkRequest[] = [];
  for (const [i, input] of inputs.entries()) {
    const output = Number(outputs[i]);
    const hasFailed = (typeof errors?.[i] === 'string' && errors[i] !== '') || output === 0;
    if (hasFailed) continue;
    const ttftS = numberOrNull(ttfts?.[i]);
    const gaps: unknown = itls?.[i];
    const decodeS = Array.isArray(gaps) ? gaps.reduce((sum: number, gap) => sum + Number(gap), 0) : null;
    requests.push({
      startS: numberOrNull(starts?.[i]),
      inputTokens: Number(input),
      outputTokens: output,
      ttftS,
      e2eS: ttftS === null || decodeS === null ? null : ttftS + decodeS,
    });
  }
  const rate = entry.request_rate;
  return {
    name: rate === undefined ? 'one load' : `${rate} requests/s`,
    requests,
    failed: inputs.length - requests.length,
    concurrency: rate === 'inf' ? numberOrNull(entry.max_concurrency) : null,
  };
}

function readGuideLlm(benchmarks: readonly unknown[], source: string): BenchmarkResult {
  const loads = benchmarks.map((benchmark, i): BenchmarkLoad => {
    const { requests } = isEntry(benchmark) ? benchmark : {};
    const answered = isEntry(requests) ? requests.successful : undefined;
    if (!Array.isArray(answered)) {
      throw refusal(
        source,
        `\`benchmarks[${i}].requests.successful\`, the requests of the load`,
        'none; GuideLLM leaves them out of reports that are not JSON or YAML',
      );
    }
    return {
      name: guideLlmName(benchmark as Entry, i),
      requests: answered.map((request) => guideLlmRequest(request as Entry)),
      failed: ['incomplete', 'errored'].reduce((sum, status) => {
        const others = (requests as Entry)[status];
        return sum + (Array.isArray(others) ? others.length : 0);
      }, 0),
      concurrency: guideLlmConcurrency(benchmark as Entry),
    };
  });
  if (loads.length === 0) throw refusal(source, 'at least one load', 'none');
  return { tool: 'GuideLLM', loads };
}

function guideLlmStrategy(benchmark: Entry): Entry {
  const config = [benchmark.config, benchmark.args].find(isEntry) ?? {};
  return [config.strategy, benchmark.strategy].find(isEntry) ?? {};
}

function guideLlmConcurrency(benchmark: Entry): number | null {
  const { type_: kind, streams } = guideLlmStrategy(benchmark);
  return kind === 'synchronous' ? 1 : kind === 'concurrent' ? numberOrNull(streams) : null;
}

function guideLlmName(benchmark: Entry, index: number): string {
  const strategy = guideLlmStrategy(benchmark);
  const kind = typeof strategy.type_ === 'string' ? strategy.type_ : `load ${index + 1}`;
  const rate = numberOrNull(strategy.rate);
  return rate === null ? kind : `${kind} at ${rate} requests/s`;
}

/** Versions differ in where they keep the times. */
function guideLlmRequest(request: Entry): BenchmarkRequest {
  const timings =
    entryIn(entryIn(request, 'info'), 'timings') ??
    entryIn(entryIn(request, 'scheduler_info'), 'request_timings') ??
    {};
  const { first_token_iteration, first_iteration, last_token_iteration, last_iteration } = timings;
  const startS = firstNumber(request.request_start_time, timings.request_start, request.start_time);
  const firstS = firstNumber(first_token_iteration, first_iteration, request.first_token_time);
  const endS = firstNumber(
    ...[last_token_iteration, last_iteration, request.last_token_time],
    ...[request.request_end_time, timings.request_end, request.end_time],
  );
  return {
    startS,
    inputTokens: Number(request.prompt_tokens),
    outputTokens: Number(request.output_tokens),
    ttftS: startS === null || firstS === null ? seconds(request.time_to_first_token_ms) : firstS - startS,
    e2eS: startS === null || endS === null ? numberOrNull(request.request_latency) : endS - startS,
  };
}

export function isEntry(value: unknown): value is Entry {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The JSON object of a line. @throws {SimulatorError} `TRACE_MALFORMED_LINE` */
export function parseEntry(text: string, source: string, line: number): Entry {
  let value: unknown = text.trim();
  try {
    value = JSON.parse(text);
  } catch {
    // The text itself is no object.
  }
  if (isEntry(value)) return value;
  throw traceError('TRACE_MALFORMED_LINE', source, line, 'a JSON object', quoteField(value));
}

function entryIn(value: unknown, key: string): Entry | undefined {
  const inner = isEntry(value) ? value[key] : undefined;
  return isEntry(inner) ? inner : undefined;
}

function listOf(value: unknown, length: number): readonly unknown[] | undefined {
  return Array.isArray(value) && value.length === length ? value : undefined;
}

function firstNumber(...values: readonly unknown[]): number | null {
  return values.map(numberOrNull).find((number) => number !== null) ?? null;
}

function seconds(ms: unknown): number | null {
  return typeof ms === 'number' && Number.isFinite(ms) ? ms / 1000 : null;
}

function numberOrNull(value: unknown): number | null {
  return typeof value === 'number' && Number.isFinite(value) ? value : null;
}

function refusal(source: string, expected: string, got: string, option?: string): SimulatorError {
  return traceError('TRACE_BENCHMARK', source, null, expected, got, option);
}
