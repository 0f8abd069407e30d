import { CalibrationError } from '../schema/calibration-error.ts';
import type { MeasuredRequest } from './measured-load.ts';

type Names = readonly (readonly [name: string, factor: number])[];

const MS = 1;
const S = 1000;

/** Fields and the factor that makes milliseconds of them; the first that is there is taken. */
const ARRIVAL: Names = [
  ['queued_ts', S],
  ['arrival_ms', MS],
  ['arrival_s', S],
  ['start_time', S],
  ['request_start_time', S],
  ['arrival_time', S],
];
const TTFT: Names = [
  ['ttft_ms', MS],
  ['time_to_first_token_ms', MS],
  ['ttft_s', S],
  ['ttft', S],
];
const E2E: Names = [
  ['e2e_ms', MS],
  ['latency_ms', MS],
  ['e2e_s', S],
  ['latency_s', S],
  ['latency', S],
  ['request_latency', S],
];
const INPUT: Names = [
  'input_tokens',
  'prompt_tokens',
  'input_length',
  'input_len',
  'prompt_len',
  'input_toks',
].map((name) => [name, 1] as const);
const OUTPUT: Names = [
  'output_tokens',
  'completion_tokens',
  'output_length',
  'output_len',
  'generated_tokens',
  'output_toks',
].map((name) => [name, 1] as const);

/**
 * One request from a JSON object: when it was sent, its lengths, TTFT and latency, under any of their usual names.
 * `first_token_ts` and `last_token_ts` are times on the clock of the arrival, in seconds.
 * @param place File and line, for the message.
 * @throws {CalibrationError} naming the fields it would take.
 */
export function parseRequestTimings(row: Readonly<Record<string, unknown>>, place: string): MeasuredRequest {
  const read = (what: string, names: Names): number => {
    const found = names.find(([name]) => row[name] !== undefined && row[name] !== null);
    if (found === undefined) {
      throw new CalibrationError(
        'CALIBRATION_FILE',
        `${place}: expected ${what} as \`${names.map(([name]) => name).join('`, `')}\`, got ${Object.keys(row).join(', ')}`,
      );
    }
    const value = row[found[0]];
    if (typeof value !== 'number') {
      throw new CalibrationError(
        'CALIBRATION_FILE',
        `${place}: expected \`${found[0]}\` to be a number, got ${JSON.stringify(value)}`,
      );
    }
    return value * found[1];
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
