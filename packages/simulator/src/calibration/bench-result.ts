import { CalibrationError } from './calibration-error.ts';
import { isGuideLlmReport, parseGuideLlmReport } from './guidellm-report.ts';
import { type MeasuredLoad, measuredLoad } from './measured-load.ts';
import { parseRequestTimings } from './request-timings.ts';
import { isVllmBench, parseVllmBench } from './vllm-bench.ts';

/**
 * Reads what a load generator wrote: `vllm bench serve --save-result --save-detailed` (also with `--append-result`), a
 * JSON report of GuideLLM, or JSON lines with the timings of one request each.
 *
 * @throws {CalibrationError} saying what was expected.
 */
export function parseBenchResult(text: string, source: string): MeasuredLoad[] {
  const whole = parsed(text);
  if (isGuideLlmReport(whole)) return parseGuideLlmReport(whole, source);
  if (isVllmBench(whole)) return [parseVllmBench(whole, source)];

  const rows = text.split('\n').flatMap((line, i) => (line.trim() === '' ? [] : [{ line, number: i + 1 }]));
  const values = rows.map(({ line, number }) => {
    const value = parsed(line);
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
      return value as Record<string, unknown>;
    }
    throw new CalibrationError(
      'CALIBRATION_FILE',
      `${source}:${number}: expected results of vllm bench serve, a GuideLLM report, or a JSON object on every line, got ${line.trim().slice(0, 40)}`,
    );
  });
  if (values.some(isVllmBench)) {
    return values.map((value, i) =>
      parseVllmBench(value, values.length === 1 ? source : `${source}#${i + 1}`),
    );
  }
  const requests = values.map((value, i) => parseRequestTimings(value, `${source}:${rows[i]!.number}`));
  return [measuredLoad(source, requests, 0)];
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
