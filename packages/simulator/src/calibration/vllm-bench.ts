import { CalibrationError } from './calibration-error.ts';
import { type MeasuredLoad, type MeasuredRequest, measuredLoad } from './measured-load.ts';

const LISTS = ['input_lens', 'output_lens', 'ttfts', 'itls', 'start_times'] as const;

type Result = Readonly<Record<string, unknown>>;

/** Whether this is a result of `vllm bench serve`, with or without the timings of its requests. */
export function isVllmBench(value: unknown): value is Result {
  return typeof value === 'object' && value !== null && ('ttfts' in value || 'mean_ttft_ms' in value);
}

/**
 * The load behind a result of `vllm bench serve --save-result --save-detailed`. Times in the file are seconds.
 * @throws {CalibrationError} when a list is missing or has another length.
 */
export function parseVllmBench(result: Result, source: string): MeasuredLoad {
  const lists = LISTS.map((name) => listOf(result, name, source));
  const [inputs, outputs, ttfts, itls, starts] = lists as [
    unknown[],
    unknown[],
    unknown[],
    unknown[],
    unknown[],
  ];
  for (const [i, list] of lists.entries()) {
    if (list.length !== inputs.length) {
      throw new CalibrationError(
        'CALIBRATION_FILE',
        `${source}: expected \`${LISTS[i]}\` to have ${inputs.length} entries, one a request, got ${list.length}`,
      );
    }
  }
  const errors = Array.isArray(result.errors) ? result.errors : [];
  const requests: MeasuredRequest[] = [];
  let failed = 0;
  for (let i = 0; i < inputs.length; i += 1) {
    if ((typeof errors[i] === 'string' && errors[i] !== '') || outputs[i] === 0) {
      failed += 1;
      continue;
    }
    const gaps = itls[i];
    const decodeS = Array.isArray(gaps)
      ? gaps.reduce((sum: number, gap) => sum + Number(gap), 0)
      : Number.NaN;
    const ttftMs = 1000 * Number(ttfts[i]);
    requests.push({
      arrivalMs: 1000 * Number(starts[i]),
      inputTokens: Number(inputs[i]),
      outputTokens: Number(outputs[i]),
      ttftMs,
      e2eMs: ttftMs + 1000 * decodeS,
    });
  }
  return measuredLoad(source, requests, failed);
}

function listOf(result: Result, name: (typeof LISTS)[number], source: string): unknown[] {
  const list = result[name];
  if (Array.isArray(list)) return list;
  if (name === 'start_times' && result.request_rate === 'inf' && result.max_concurrency == null) {
    return new Array((result.input_lens as unknown[]).length).fill(0);
  }
  const why =
    name === 'start_times'
      ? 'which newer versions of vLLM write (older ones only do for a rate of inf without a maximum concurrency)'
      : 'which vllm bench serve writes with --save-detailed';
  throw new CalibrationError('CALIBRATION_FILE', `${source}: expected a list \`${name}\`, ${why}`);
}
