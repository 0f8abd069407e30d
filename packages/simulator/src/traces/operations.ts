import { RandomStream } from '../random/counter-random.ts';
import { counted } from '../reporting/counted.ts';
import { traceError } from '../simulator-error.ts';
import type { Trace } from './trace.ts';

/** The same requests, arriving `factor` times as fast; think times stay. `factor` is a positive, finite number. */
export function scaleRate(trace: Trace, factor: number): Trace {
  if (!(factor > 0 && factor < Number.POSITIVE_INFINITY)) {
    throw traceError('TRACE_OPTION', trace.source, null, 'a rate scale above 0', `${factor}`);
  }
  return factor === 1 ? trace : { ...trace, arrivalMs: trace.arrivalMs.map((ms) => ms / factor) };
}

/** The first `count` requests, or all of them when there are fewer. `count` is a whole number from 1. */
export function takeRequests(trace: Trace, count: number): Trace {
  checkCount(trace, count);
  return count >= trace.arrivalMs.length ? trace : sliceRequests(trace, 0, count);
}

/** The requests `start` .. `end - 1`. A conversation that began before goes on at the recorded time. */
export function sliceRequests(trace: Trace, start: number, end: number): Trace {
  return pickRequests(
    trace,
    Int32Array.from({ length: end - start }, (_, i) => start + i),
  );
}

/** The requests of these indices, in this order. What follows a request that is not among them comes at the recorded time. */
export function pickRequests(trace: Trace, picked: Int32Array): Trace {
  const { arrivalMs, inputTokens, outputTokens, adapters, prefixBlocks, followUps } = trace;
  const requests = {
    source: trace.source,
    arrivalMs: Float64Array.from(picked, (i) => arrivalMs[i]),
    inputTokens: Int32Array.from(picked, (i) => inputTokens[i]),
    outputTokens: Int32Array.from(picked, (i) => outputTokens[i]),
  };
  return {
    ...(followUps && { followUps: pickFollowUps(followUps, picked) }),
    ...requests,
    ...(adapters && { adapters: { ...adapters, of: Int32Array.from(picked, (i) => adapters.of[i]) } }),
    ...(prefixBlocks && { prefixBlocks: { ...prefixBlocks, ...pickBlocks(prefixBlocks, picked) } }),
  };
}

function pickFollowUps({ previous, thinkMs }: NonNullable<Trace['followUps']>, picked: Int32Array) {
  const position = new Int32Array(previous.length).fill(-1);
  for (const [at, i] of picked.entries()) position[i] = at;
  return {
    previous: Int32Array.from(picked, (i) => (previous[i] === -1 ? -1 : position[previous[i]])),
    thinkMs: Float64Array.from(picked, (i) => thinkMs[i]),
  };
}

function pickBlocks({ ids, offsets }: NonNullable<Trace['prefixBlocks']>, picked: Int32Array) {
  const ends = new Int32Array(picked.length + 1);
  for (const [to, i] of picked.entries()) ends[to + 1] = ends[to] + offsets[i + 1] - offsets[i];
  const own = new Float64Array(ends[picked.length]);
  for (const [to, i] of picked.entries()) own.set(ids.subarray(offsets[i], offsets[i + 1]), ends[to]);
  return { ids: own, offsets: ends };
}

/**
 * Plays the trace over and over until there are `count` requests. Between the last arrival of a copy and the first of
 * the next lies the trace's mean gap between arrivals, so that the mean rate stays what it was. Copies have the same
 * prefixes. With fewer than the trace's own requests it is `takeRequests`.
 */
export function repeatTrace(trace: Trace, count: number): Trace {
  checkCount(trace, count);
  const length = trace.arrivalMs.length;
  if (count <= length) return takeRequests(trace, count);
  const last = trace.arrivalMs[length - 1];
  const period = last + (length > 1 ? last / (length - 1) : 0);
  const { followUps, ...requests } = trace;
  return {
    ...pickRequests(
      requests,
      Int32Array.from({ length: count }, (_, i) => i % length),
    ),
    arrivalMs: Float64Array.from(
      { length: count },
      (_, i) => Math.floor(i / length) * period + trace.arrivalMs[i % length],
    ),
    ...(followUps && { followUps: repeatFollowUps(followUps, count) }),
  };
}

function repeatFollowUps(
  { previous, thinkMs }: NonNullable<Trace['followUps']>,
  count: number,
): NonNullable<Trace['followUps']> {
  const length = previous.length;
  return {
    previous: Int32Array.from({ length: count }, (_, i) => {
      const followed = previous[i % length];
      return followed === -1 ? -1 : i - (i % length) + followed;
    }),
    thinkMs: Float64Array.from({ length: count }, (_, i) => thinkMs[i % length]),
  };
}

/** `batch` requests of one size that are all there at time zero. */
export function closedBatch(batch: number, inputTokens: number, outputTokens: number): Trace {
  return {
    source: `batch of ${batch} x (${inputTokens} in, ${outputTokens} out)`,
    arrivalMs: new Float64Array(batch),
    inputTokens: new Int32Array(batch).fill(inputTokens),
    outputTokens: new Int32Array(batch).fill(outputTokens),
  };
}

/** Requests to draw, as load generators do. */
export interface DrawnLengths {
  readonly requests: number;
  /** Nominal prompt and output, tokens. */
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** Shortest length over the nominal one, (0, 1]; lengths are drawn uniformly between both. Default 1. */
  readonly range?: number;
  /** Default 0. */
  readonly seed?: number;
}

/** `closedBatch` with lengths that differ. @throws SimulatorError when the range is out of range. */
export function drawLengths({
  requests,
  inputTokens,
  outputTokens,
  range = 1,
  seed = 0,
}: DrawnLengths): Trace {
  const batch = closedBatch(requests, inputTokens, outputTokens);
  if (!(range > 0 && range <= 1)) {
    throw traceError('TRACE_OPTION', batch.source, null, 'a length range above 0 and at most 1', `${range}`);
  }
  const random = new RandomStream(seed, 'lengths');
  const shortened = (nominal: number) => random.integer(Math.max(1, Math.ceil(range * nominal)), nominal);
  return {
    source: `${counted(requests, 'request')} of ${inputTokens} tokens in, ${outputTokens} out${range === 1 ? '' : ` (lengths from ${range} of these)`}`,
    arrivalMs: batch.arrivalMs,
    inputTokens: batch.inputTokens.map(shortened),
    outputTokens: batch.outputTokens.map(shortened),
  };
}

/** `drawLengths` for requests that arrive as a Poisson process, `rate` a second for `seconds`. */
export function poissonTrace(
  lengths: Omit<DrawnLengths, 'requests' | 'seed'>,
  rate: number,
  seconds: number,
  seed: number,
): Trace {
  const random = new RandomStream(seed, 'arrivals');
  const arrivals: number[] = [];
  for (let s = random.exponential(1 / rate); s < seconds; s += random.exponential(1 / rate))
    arrivals.push(1000 * s);
  return {
    ...drawLengths({ ...lengths, requests: arrivals.length, seed }),
    source: `${rate} requests/s of ${lengths.inputTokens} tokens in, ${lengths.outputTokens} out`,
    arrivalMs: Float64Array.from(arrivals),
  };
}

function checkCount(trace: Trace, count: number): void {
  if (!Number.isSafeInteger(count) || count < 1) {
    throw traceError('TRACE_OPTION', trace.source, null, 'a whole number of requests from 1', `${count}`);
  }
}
