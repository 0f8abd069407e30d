import { isBenchmarkResult, readBenchmarkResult } from '@servegym/simulator';
import { ProfileError } from '../schema/read-json.ts';
import { type MeasuredLoad, type MeasuredRequest, measuredLoad } from './measured-load.ts';

/**
 * Reads what a load generator wrote: `vllm bench serve --save-result --save-detailed` (also with `--append-result`), a
 * JSON report of GuideLLM, or JSON lines with the timings of one request each.
 *
 * @throws {SimulatorError} or {ProfileError} saying what was expected.
 */
export function parseBenchResult(text: string, source: string): MeasuredLoad[] {
  const whole = parsed(text);
  if (isBenchmarkResult(whole)) return loadsOf(whole, source);

  const rows = text
    .split('\n')
    .flatMap((line, i) => (line.trim() === '' ? [] : [{ line, place: `${source}:${i + 1}` }]))
    .map(({ line, place }) => ({ place, value: objectOf(line, place) }));
  if (rows.some(({ value }) => isBenchmarkResult(value))) {
    return rows.flatMap(({ value }, i) => loadsOf(value, `${source}#${i + 1}`));
  }
  const requests = rows.map(({ value, place }) => parseRequestTimings(value, place));
  return [measuredLoad(source, requests, 0)];
}

function loadsOf(result: unknown, source: string): MeasuredLoad[] {
  const { loads } = readBenchmarkResult(result, source);
  return loads.map((load) => {
    const name = loads.length === 1 ? source : `${source}: ${load.name}`;
    const requests = load.requests.map((request) => timed(request, name));
    return measuredLoad(name, requests, load.failed, load.concurrency);
  });
}

type ResultLoad = ReturnType<typeof readBenchmarkResult>['loads'][number];

function timed(request: ResultLoad['requests'][number], source: string): MeasuredRequest {
  const { startS, ttftS, e2eS, inputTokens, outputTokens } = request;
  if (startS !== null && ttftS !== null && e2eS !== null) {
    return { arrivalMs: 1000 * startS, inputTokens, outputTokens, ttftMs: 1000 * ttftS, e2eMs: 1000 * e2eS };
  }
  const expected =
    'the start, the time to first token and the latency of every request (vllm bench serve writes `start_times`, `ttfts` and `itls` with --save-detailed, from version 0.11 on)';
  throw new ProfileError('CALIBRATION_FILE', source, expected, 'some without');
}

function objectOf(line: string, place: string): Readonly<Record<string, unknown>> {
  const value = parsed(line);
  if (typeof value === 'object' && value !== null && !Array.isArray(value))
    return value as Record<string, unknown>;
  const expected = 'results of vllm bench serve, a GuideLLM report, or a JSON object on every line';
  throw new ProfileError('CALIBRATION_FILE', place, expected, line.trim().slice(0, 40));
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

type Names = readonly (readonly [name: string, factor: number])[];

const named = (names: string, factor: number): Names => names.split(' ').map((name) => [name, factor]);
const MS = 1;
const S = 1000;

/** Fields and the factor that makes milliseconds of them; the first that is there is taken. */
const ARRIVAL: Names = [
  ['queued_ts', S],
  ['arrival_ms', MS],
  ...named('arrival_s start_time request_start_time arrival_time', S),
];
const TTFT: Names = [...named('ttft_ms time_to_first_token_ms', MS), ...named('ttft_s ttft', S)];
const E2E: Names = [
  ...named('e2e_ms latency_ms', MS),
  ...named('e2e_s latency_s latency request_latency', S),
];
const INPUT = named('input_tokens prompt_tokens input_length input_len prompt_len input_toks', 1);
const OUTPUT = named(
  'output_tokens completion_tokens output_length output_len generated_tokens output_toks',
  1,
);

/**
 * One request from a JSON object: when it was sent, its lengths, TTFT and latency, under any of their usual names.
 * `first_token_ts` and `last_token_ts` are times on the clock of the arrival, in seconds.
 * @param place File and line, for the message.
 * @throws {ProfileError} naming the fields it would take.
 */
function parseRequestTimings(row: Readonly<Record<string, unknown>>, place: string): MeasuredRequest {
  const refuse = (expected: string, got: string) =>
    new ProfileError('CALIBRATION_FILE', place, expected, got);
  const read = (what: string, names: Names): number => {
    const [name, factor] = names.find(([each]) => row[each] !== undefined && row[each] !== null) ?? [];
    if (name === undefined) {
      const known = names.map(([each]) => each).join('`, `');
      throw refuse(`${what} as \`${known}\``, Object.keys(row).join(', '));
    }
    const value = row[name];
    if (typeof value !== 'number') throw refuse(`\`${name}\` to be a number`, JSON.stringify(value));
    return value * factor!;
  };
  const arrivalMs = read('the time it was sent', ARRIVAL);
  const sinceArrival = (what: string, names: Names, clock: string) =>
    typeof row[clock] === 'number' ? row[clock] * S - arrivalMs : read(what, [...names, [clock, S]]);
  return {
    arrivalMs,
    inputTokens: read('prompt tokens', INPUT),
    outputTokens: read('output tokens', OUTPUT),
    ttftMs: sinceArrival('the time to first token', TTFT, 'first_token_ts'),
    e2eMs: sinceArrival('the time to the last token', E2E, 'last_token_ts'),
  };
}
