import { type BenchmarkLoad, isBenchmarkResult, readBenchmarkResult } from '@servegym/simulator';
import { CalibrationError } from '../schema/calibration-error.ts';
import { type MeasuredLoad, type MeasuredRequest, measuredLoad } from './measured-load.ts';
import { parseRequestTimings } from './request-timings.ts';

/**
 * Reads what a load generator wrote: `vllm bench serve --save-result --save-detailed` (also with `--append-result`), a
 * JSON report of GuideLLM, or JSON lines with the timings of one request each.
 *
 * @throws {TraceError} or {CalibrationError} saying what was expected.
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
  return [
    measuredLoad(
      source,
      rows.map(({ value, place }) => parseRequestTimings(value, place)),
      0,
    ),
  ];
}

function loadsOf(result: unknown, source: string): MeasuredLoad[] {
  const { loads } = readBenchmarkResult(result, source);
  return loads.map((load) => {
    const name = loads.length === 1 ? source : `${source}: ${load.name}`;
    return measuredLoad(
      name,
      load.requests.map((request) => timed(request, name)),
      load.failed,
    );
  });
}

function timed(request: BenchmarkLoad['requests'][number], source: string): MeasuredRequest {
  const { startS, ttftS, e2eS, inputTokens, outputTokens } = request;
  if (startS !== null && ttftS !== null && e2eS !== null) {
    return { arrivalMs: 1000 * startS, inputTokens, outputTokens, ttftMs: 1000 * ttftS, e2eMs: 1000 * e2eS };
  }
  throw new CalibrationError(
    'CALIBRATION_FILE',
    `${source}: expected the start, the time to first token and the latency of every request (vllm bench serve writes \`start_times\`, \`ttfts\` and \`itls\` with --save-detailed, from version 0.11 on), got some without`,
  );
}

function objectOf(line: string, place: string): Readonly<Record<string, unknown>> {
  const value = parsed(line);
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
    return value as Record<string, unknown>;
  }
  throw new CalibrationError(
    'CALIBRATION_FILE',
    `${place}: expected results of vllm bench serve, a GuideLLM report, or a JSON object on every line, got ${line.trim().slice(0, 40)}`,
  );
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
