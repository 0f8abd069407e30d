import { CalibrationError } from './calibration-error.ts';
import { type MeasuredLoad, type MeasuredRequest, measuredLoad } from './measured-load.ts';

type Json = Readonly<Record<string, unknown>>;

/** Whether this is a JSON report of GuideLLM. */
export function isGuideLlmReport(
  value: unknown,
): value is Json & { readonly benchmarks: readonly unknown[] } {
  return (
    typeof value === 'object' && value !== null && 'benchmarks' in value && Array.isArray(value.benchmarks)
  );
}

/**
 * The loads behind a report of GuideLLM, one for each benchmark.
 * @throws {CalibrationError} when a benchmark has no list of its requests.
 */
export function parseGuideLlmReport(
  report: { readonly benchmarks: readonly unknown[] },
  source: string,
): MeasuredLoad[] {
  if (report.benchmarks.length === 0) {
    throw new CalibrationError('CALIBRATION_FILE', `${source}: expected benchmarks, got none`);
  }
  return report.benchmarks.map((benchmark, i) => {
    const name = report.benchmarks.length === 1 ? source : `${source}#${i + 1}`;
    const requests = at(benchmark, 'requests');
    const successful = at(requests, 'successful');
    if (!Array.isArray(successful)) {
      throw new CalibrationError(
        'CALIBRATION_FILE',
        `${name}: expected \`requests.successful\` to be a list of requests, got ${JSON.stringify(successful) ?? 'nothing'}`,
      );
    }
    const failed = ['incomplete', 'errored'].reduce((sum, status) => {
      const list = at(requests, status);
      return sum + (Array.isArray(list) ? list.length : 0);
    }, 0);
    return measuredLoad(name, successful.map(readRequest), failed);
  });
}

/** Reports of every version so far: older ones keep the times in `scheduler_info`, newer ones in `info`. */
function readRequest(request: unknown): MeasuredRequest {
  const started =
    at(request, 'request_start_time') ??
    at(request, 'start_time') ??
    at(at(at(request, 'info'), 'timings'), 'request_start') ??
    at(at(at(request, 'scheduler_info'), 'request_timings'), 'request_start');
  const outputTokens = Number(at(request, 'output_tokens'));
  const ttftMs = Number(at(request, 'time_to_first_token_ms') ?? Number.NaN);
  const betweenMs = at(request, 'inter_token_latency_ms');
  const e2eMs =
    outputTokens === 1
      ? ttftMs
      : typeof betweenMs === 'number'
        ? ttftMs + betweenMs * (outputTokens - 1)
        : 1000 * Number(at(request, 'request_latency') ?? Number.NaN);
  return {
    arrivalMs: 1000 * Number(started ?? Number.NaN),
    inputTokens: Number(at(request, 'prompt_tokens')),
    outputTokens,
    ttftMs,
    e2eMs,
  };
}

function at(value: unknown, key: string): unknown {
  return typeof value === 'object' && value !== null ? (value as Json)[key] : undefined;
}
