import type { Trace } from '@servegym/simulator';
import type { MeasuredLoad } from './measured-load.ts';

const STRETCHES = 8;
const QUANTILES = 4;

/** Times by request, in order of arrival; TPOT is NaN for outputs of one token. */
export interface Times {
  readonly ttftMs: Float64Array;
  readonly tpotMs: Float64Array;
  readonly e2eMs: Float64Array;
}

/** One load as the fit sees it. */
export interface FittedLoad {
  readonly load: MeasuredLoad;
  readonly trace: Trace;
  readonly measured: Times;
  /** Requests whose means are compared: stretches of time, and quantiles of the lengths. */
  readonly groups: readonly (readonly number[])[];
}

/** A load, its trace and its groups. */
export function fittedLoad(load: MeasuredLoad): FittedLoad {
  const { requests } = load;
  const measured = timesOf(requests.length);
  for (const [i, { ttftMs, e2eMs, outputTokens }] of requests.entries()) {
    measured.ttftMs[i] = ttftMs;
    measured.tpotMs[i] = (e2eMs - ttftMs) / (outputTokens - 1);
    measured.e2eMs[i] = e2eMs;
  }
  const all = requests.map((_, i) => i);
  const by = (length: (i: number) => number) => all.toSorted((a, b) => length(a) - length(b));
  return {
    load,
    trace: {
      source: load.source,
      arrivalMs: Float64Array.from(requests, ({ arrivalMs }) => arrivalMs),
      inputTokens: Int32Array.from(requests, ({ inputTokens }) => inputTokens),
      outputTokens: Int32Array.from(requests, ({ outputTokens }) => outputTokens),
    },
    measured,
    groups: [
      ...parts(all, STRETCHES),
      ...parts(
        by((i) => requests[i].inputTokens),
        QUANTILES,
      ),
      ...parts(
        by((i) => requests[i].outputTokens),
        QUANTILES,
      ),
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
