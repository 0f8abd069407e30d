import { ProfileError } from '../schema/read-json.ts';

/** One request of a load on a real server, as its client saw it. */
export interface MeasuredRequest {
  /** When it was sent, ms on any clock. */
  readonly arrivalMs: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** Sent to first token, ms. */
  readonly ttftMs: number;
  /** Sent to last token, ms. */
  readonly e2eMs: number;
}

/** A load on a real server that was idle before it, request by request in order of arrival. */
export interface MeasuredLoad {
  /** File, and which of its loads when it has several. */
  readonly source: string;
  readonly requests: readonly MeasuredRequest[];
  /** Requests that got no answer. They are left out. */
  readonly failed: number;
  /** Clients that each sent a request when the one before had ended. Default: requests had their own times. */
  readonly concurrency?: number;
}

/** Puts requests in order, the first at 0 ms. @throws {ProfileError} naming the request and the field at fault. */
export function measuredLoad(
  source: string,
  requests: readonly MeasuredRequest[],
  failed: number,
  concurrency?: number | null,
): MeasuredLoad {
  if (requests.length === 0)
    throw new ProfileError('CALIBRATION_FILE', source, 'requests that were answered', 'none');
  for (const [i, request] of requests.entries()) {
    const { arrivalMs, inputTokens, outputTokens, ttftMs, e2eMs } = request;
    const check = (field: string, expected: string, got: number, isRight: boolean) => {
      const what = `${field} of request ${i + 1} to be ${expected}`;
      if (!isRight)
        throw new ProfileError('CALIBRATION_FILE', source, what, JSON.stringify(got) ?? 'nothing');
    };
    const checkTokens = (field: string, got: number) =>
      check(field, 'a whole number of tokens from 1', got, Number.isInteger(got) && got > 0);
    check('the start', 'a time', arrivalMs, Number.isFinite(arrivalMs));
    checkTokens('the prompt', inputTokens);
    checkTokens('the output', outputTokens);
    check('the TTFT', 'a time above 0', ttftMs, Number.isFinite(ttftMs) && ttftMs > 0);
    const notBelow = `a time not below the TTFT of ${ttftMs} ms`;
    check('the latency', notBelow, e2eMs, Number.isFinite(e2eMs) && e2eMs >= ttftMs);
  }
  const sorted = requests.toSorted((a, b) => a.arrivalMs - b.arrivalMs);
  const first = sorted[0].arrivalMs;
  return {
    source,
    requests: sorted.map((request) => ({ ...request, arrivalMs: request.arrivalMs - first })),
    failed,
    ...(concurrency && { concurrency }),
  };
}

/** Requests in the system at each arrival, the one that arrives included. */
export function concurrencyOf({ requests }: MeasuredLoad): number[] {
  const ends = Float64Array.from(requests, ({ arrivalMs, e2eMs }) => arrivalMs + e2eMs).sort();
  let ended = 0;
  return requests.map(({ arrivalMs }, i) => {
    while (ends[ended] <= arrivalMs) ended += 1;
    return i + 1 - ended;
  });
}

/** The largest of values of which there may be more than a call takes arguments. */
export function mostOf(values: readonly number[]): number {
  return values.reduce((most, value) => Math.max(most, value), Number.NEGATIVE_INFINITY);
}

/** Gaps of loads that leave coefficients undetermined, in sentences. */
export function gapsOf(loads: readonly MeasuredLoad[]): string[] {
  const requests = loads.flatMap((load) => load.requests);
  const running = loads.flatMap(concurrencyOf);
  const inputs = requests.map(({ inputTokens }) => inputTokens);
  const contexts = requests.map(({ inputTokens, outputTokens }) => inputTokens + outputTokens / 2);
  return sentencesIf([
    [
      running.every((count) => count < 4) || spreadOf(running) < 2,
      `The number of requests at once hardly varies (${range(running)}): what an iteration costs and what each sequence adds to it cannot be told apart. Add a load with another rate.`,
    ],
    [
      spreadOf(inputs) < 1.5,
      `Prompts are of about one length (${range(inputs)} tokens): the cost of a prompt token and the overhead of a request cannot be told apart. Add a load with other prompts.`,
    ],
    [
      spreadOf(contexts) < 1.5,
      `Contexts are of about one length (${range(contexts)} tokens): the cost of a sequence and that of its context cannot be told apart. Add a load with longer prompts or outputs.`,
    ],
  ]);
}

/** The sentences whose conditions hold. */
export function sentencesIf(cases: readonly (readonly [holds: boolean, sentence: string])[]): string[] {
  return cases.flatMap(([holds, sentence]) => (holds ? [sentence] : []));
}

/** Ratio of the 90th to the 10th percentile. */
function spreadOf(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor(0.9 * (sorted.length - 1))] / sorted[Math.floor(0.1 * (sorted.length - 1))];
}

function range(values: readonly number[]): string {
  const least = values.reduce((low, value) => Math.min(low, value), Number.POSITIVE_INFINITY);
  const [low, high] = [least, mostOf(values)].map(Math.round);
  return low === high ? `${low}` : `${low} to ${high}`;
}

const STRETCHES = 8;
const QUANTILES = 4;

/** Times by request, in order of arrival; TPOT is NaN for outputs of one token. */
export interface Times {
  readonly ttftMs: Float64Array;
  readonly tpotMs: Float64Array;
  readonly e2eMs: Float64Array;
}

/** One load as the fit sees it. */
export type FittedLoad = ReturnType<typeof fittedLoad>;

/** A load, its trace and its groups. */
export function fittedLoad(load: MeasuredLoad) {
  const { requests } = load;
  const measured = timesOf(requests.length);
  for (const [i, { ttftMs, e2eMs, outputTokens }] of requests.entries()) {
    measured.ttftMs[i] = ttftMs;
    measured.tpotMs[i] = (e2eMs - ttftMs) / (outputTokens - 1);
    measured.e2eMs[i] = e2eMs;
  }
  const all = requests.map((_, i) => i);
  const by = (length: 'inputTokens' | 'outputTokens') =>
    all.toSorted((a, b) => requests[a][length] - requests[b][length]);
  return {
    load,
    trace: {
      source: load.source,
      arrivalMs: Float64Array.from(requests, ({ arrivalMs }) => arrivalMs),
      inputTokens: Int32Array.from(requests, ({ inputTokens }) => inputTokens),
      outputTokens: Int32Array.from(requests, ({ outputTokens }) => outputTokens),
    },
    measured,
    /** Requests whose means are compared: stretches of time, and quantiles of the lengths. */
    groups: [
      ...parts(all, STRETCHES),
      ...parts(by('inputTokens'), QUANTILES),
      ...parts(by('outputTokens'), QUANTILES),
    ],
  };
}

/** `count` runs of about equal length. */
export function parts(indices: readonly number[], count: number): number[][] {
  return Array.from({ length: count }, (_, part) =>
    indices.slice(
      Math.round((part * indices.length) / count),
      Math.round(((part + 1) * indices.length) / count),
    ),
  );
}

/** Times of so many requests, of which nothing is known yet. */
export function timesOf(requests: number): Times {
  return {
    ttftMs: new Float64Array(requests),
    tpotMs: new Float64Array(requests).fill(Number.NaN),
    e2eMs: new Float64Array(requests),
  };
}
