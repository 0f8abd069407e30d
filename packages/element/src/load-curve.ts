import { type Deployment, engineUsd, profileError, serveTraffic } from '@servegym/operators/browser';
import {
  closedBatch,
  poissonTrace,
  type SimulatedSpan,
  type Summary,
  summarizeRun,
  type Trace,
} from '@servegym/simulator';

/** Requests of one size under an SLO, which a deployment serves. */
export interface Load {
  /** Requests a second. */
  readonly rate: number;
  /** Tokens of each prompt and of each answer. */
  readonly input: number;
  readonly output: number;
  /** Bounds of the p99, ms. */
  readonly sloTtft: number;
  readonly sloTpot: number;
}

/** Latencies and use at one rate. */
export interface CurvePoint {
  /** Requests a second that arrive, and that are served. */
  readonly rate: number;
  readonly servedRate: number;
  /** ms */
  readonly ttft: Summary;
  readonly tpot: Summary;
  /** Share of the KV blocks in use: mean over time, and most. */
  readonly kvMean: number;
  readonly kvPeak: number;
  readonly preemptions: number;
  /** Prompt and answer counted together. */
  readonly usdPerMillionTokens: number;
  readonly holds: boolean;
}

export interface LoadCurve {
  readonly profile: string;
  readonly engines: number;
  readonly gpus: number;
  readonly usdPerHour: number;
  /** Tokens of context that the KV blocks of all engines hold. */
  readonly kvTokens: number;
  /** By ascending rate. */
  readonly points: readonly CurvePoint[];
  /** At the rate that was asked for. */
  readonly at: CurvePoint;
  /** Largest simulated rate that meets the SLO, and the bound that breaks first above it; `null` where none does. */
  readonly breaking: { readonly rate: number; readonly first: 'TTFT' | 'TPOT' | null } | null;
  readonly status: 'measured' | 'tables' | 'estimated';
  /** Source of the times. */
  readonly source: string;
  /** Shares of TPOT and TTFT that 90 % of the left-out errors lie within. */
  readonly error: { readonly share: number; readonly ttftShare: number; readonly source: string };
}

/** Least time, s, and least requests that are simulated at each rate. */
export interface Effort {
  readonly seconds: number;
  readonly requests: number;
  /** Rates over what a full queue is served at. */
  readonly shares: readonly number[];
  /** Most requests of the full queue. */
  readonly queued: number;
  /** Ratio of the rates on both sides of the breaking point. */
  readonly tolerance: number;
}
const SHARES = [0.1, 0.25, 0.4, 0.55, 0.7, 0.8, 0.9, 1, 1.15];
/** A first look, and what is then shown. */
export const EFFORTS: readonly Effort[] = [
  { seconds: 30, requests: 300, shares: [0.15, 0.45, 0.75, 1], queued: 512, tolerance: 1.25 },
  { seconds: 120, requests: 2000, shares: SHARES, queued: 4096, tolerance: 1.02 },
];

/** Seed of the arrivals. */
const SEED = 0;
/** Steps in search of a rate that meets the SLO below these, and of one that does not above them. */
const [DOWN, UP, MOST_STEPS] = [0.5, 1.3, 6];

/**
 * Latencies of a deployment over the rate of requests. Yields after each simulation, for callers that may stop.
 *
 * @throws SimulatorError when the settings do not fit the profile; RangeError when no request fits
 */
export function* loadCurve(
  deployment: Deployment,
  load: Load,
  { seconds, requests, shares, queued, tolerance }: Effort,
): Generator<undefined, LoadCurve> {
  const { profile, settings, engines } = deployment;
  const { input, output } = load;
  const usdPerHour = engines * engineUsd(profile);
  const batch = Math.min(queued, 2 * engines * settings.maxNumSeqs);
  const full = serve(deployment, closedBatch(batch, input, output));
  if (full.run.completed === 0)
    throw new RangeError(
      `Expected requests that fit the KV cache of ${full.run.kvBlocks * profile.memory.blockTokens} tokens, got ${input} + ${output}`,
    );
  const capacity = (1000 * full.run.completed) / full.run.simulatedMs;
  const points: CurvePoint[] = [];
  const measure = (rate: number): CurvePoint => {
    const time = Math.max(seconds, requests / rate);
    const trace = poissonTrace({ inputTokens: input, outputTokens: output }, rate, time, SEED);
    const { run, kvMean, kvPeak } = serve(deployment, trace);
    const { ttft, tpot, completed, simulatedMs, counters } = summarizeRun(run);
    const servedRate = (1000 * completed) / simulatedMs;
    const usdPerMillionTokens = (1e6 * usdPerHour) / 3600 / (servedRate * (input + output));
    const holds = !(ttft.p99 > load.sloTtft || tpot.p99 > load.sloTpot);
    const point = { rate, servedRate, ttft, tpot, kvMean, kvPeak, usdPerMillionTokens, holds };
    points.push({ ...point, preemptions: counters.preemptions });
    points.sort((a, b) => a.rate - b.rate);
    return points.find((each) => each.rate === rate)!;
  };
  for (const share of shares) {
    measure(share * capacity);
    yield;
  }
  const at = measure(load.rate);
  yield;
  const lowest = () => points.findLast(({ holds }, i) => holds && points.slice(0, i).every((p) => p.holds));
  const above = () => points.find(({ holds }) => !holds);
  for (let step = 0; step < MOST_STEPS && lowest() === undefined; step++) {
    measure(points[0].rate * DOWN);
    yield;
  }
  for (let step = 0; step < MOST_STEPS && above() === undefined; step++) {
    measure(points.at(-1)!.rate * UP);
    yield;
  }
  let low = lowest();
  for (let high = above(); low && high && high.rate / low.rate > tolerance; high = above()) {
    measure(Math.sqrt(low.rate * high.rate));
    yield;
    low = lowest();
  }
  const high = above();
  return {
    ...{ profile: profile.name, engines, gpus: engines * profile.gpu.count, usdPerHour },
    kvTokens: engines * full.run.kvBlocks * profile.memory.blockTokens,
    ...{ points, at },
    breaking: low === undefined ? null : { rate: low.rate, first: high ? breaksFirst(high, load) : null },
    status: profile.weights[settings.weights]!.status,
    source: profile.source,
    error: profileError(profile, settings.weights),
  };
}

function breaksFirst({ ttft, tpot }: CurvePoint, { sloTtft, sloTpot }: Load): 'TTFT' | 'TPOT' {
  return ttft.p99 / sloTtft >= (tpot.p99 || 0) / sloTpot ? 'TTFT' : 'TPOT';
}

/** Serves a trace; with the share of the KV blocks in use. */
function serve(
  { profile, settings, engines, router, kvBlocks }: Deployment,
  trace: Trace,
  onSpan?: (span: SimulatedSpan) => void,
) {
  let [weighted, busyMs, most] = [0, 0, 0];
  const run = serveTraffic(
    profile,
    settings,
    { trace, blockStarts: [0, trace.arrivalMs.length] },
    {
      ...{ load: 1, seed: SEED, replicas: engines, router, kvBlocks },
      onIterations(span) {
        const { kvBlocksUsed, durationMs } = span;
        onSpan?.(span);
        weighted += kvBlocksUsed * durationMs;
        busyMs += durationMs;
        if (kvBlocksUsed > most) most = kvBlocksUsed;
      },
    },
  );
  return { run, kvMean: weighted / busyMs / run.kvBlocks, kvPeak: most / run.kvBlocks };
}

/** Requests on their way through a server, and its KV cache, over a stretch of time. */
export interface LoadFilm {
  readonly ms: number;
  /** Arrival, begin of prefill, first and last token of each request, ms from the start of the stretch, which may lie in it. */
  readonly requests: readonly (readonly [number, number, number, number])[];
  /** Time and share of the KV blocks in use, evenly spaced from the start to the end. */
  readonly kv: readonly number[];
}

/** Requests of a film, about. A choice: as many as can be followed. */
const FILMED = 80;
const KV_POINTS = 60;

/** A stretch at one rate of a server that has been running for as long before. */
export function loadFilm(deployment: Deployment, { rate, input, output }: Load): LoadFilm {
  const ms = (1000 * FILMED) / rate;
  const trace = poissonTrace({ inputTokens: input, outputTokens: output }, rate, (2 * ms) / 1000, SEED);
  const kv = new Float64Array(KV_POINTS + 1);
  const { run } = serve(deployment, trace, ({ startMs, durationMs, kvBlocksUsed }) => {
    const first = Math.max(0, Math.ceil(((startMs - ms) / ms) * KV_POINTS));
    for (let i = first; i <= KV_POINTS && ms + (i * ms) / KV_POINTS < startMs + durationMs; i++)
      kv[i]! += kvBlocksUsed;
  });
  const requests = Array.from(run.ids, (id, i): LoadFilm['requests'][number] => {
    const arrival = trace.arrivalMs[id]! - ms;
    return [arrival, arrival + run.queueMs[i]!, arrival + run.ttftMs[i]!, arrival + run.e2eMs[i]!];
  }).filter(([arrival, , , last]) => arrival < ms && last > 0);
  return { ms, requests, kv: Array.from(kv, (used) => used / run.kvBlocks / deployment.engines) };
}

/** A curve to its end. */
export function wholeCurve(deployment: Deployment, load: Load, effort: Effort): LoadCurve {
  const steps = loadCurve(deployment, load, effort);
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value;
  }
}
