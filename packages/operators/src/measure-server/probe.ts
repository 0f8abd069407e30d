import { type BenchParameter, fittedLoad, type MeasuredLoad } from '@servegym/profiles';
import {
  type EngineProfile,
  RandomStream,
  type SimulationRun,
  type Summary,
  simulateTrace,
  type Trace,
  type WeightPrecision,
} from '@servegym/simulator';
import { summarize } from '@servegym/simulator/statistics';
import type { ServerFacts } from './start-profile.ts';

export interface Probe {
  readonly name: string;
  readonly requests: readonly ProbeRequest[];
  /** Whether a request is sent when the one before it has ended, whatever its `atMs`. */
  readonly isSequential: boolean;
}

export interface ProbeRequest {
  /** Time at which it is sent, after the start of the load, ms. */
  readonly atMs: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** Blocks of tokens at the start of the prompt; equal ids are equal tokens. Default: no prompt begins as another does. */
  readonly prefix?: { readonly blockTokens: number; readonly ids: ArrayLike<number> };
}

type ProbeLimits = Pick<ServerFacts, 'maxModelLen' | 'maxNumSeqs'>;
export type EngineLimits = Pick<ServerFacts, 'maxNumSeqs' | 'maxNumBatchedTokens' | 'kvBlocks'>;

/** Kinds of probes, and the coefficients that each is there for. */
const SHOWS = {
  single: ['requestOverheadMs', 'baseUs', 'weightReadUs', 'experts'],
  long: ['perTokenUs', 'perPrefillAttentionNs', 'perContextTokenBesidePrefillNs', 'prefillLaunchUs'],
  batch: ['perDecodeSequenceUs', 'manySequences'],
  context: ['perContextTokenNs'],
} satisfies Record<string, BenchParameter[]>;
export type ProbeKind = keyof typeof SHOWS;

/** The kind of probe that tells most of a coefficient; none where open loads do. */
export function probeKindFor(parameter: BenchParameter): ProbeKind | undefined {
  const kinds: readonly ProbeKind[] = ['single', 'long', 'batch', 'context'];
  return kinds.find((kind) => SHOWS[kind].some((shown) => shown === parameter));
}

const SINGLE_SHARES = [1 / 64, 1 / 16, 1 / 4, 1 / 2];
const SINGLE_OUTPUT = 24;
const MEAN_INPUT_SHARE = 1 / 16;
const MEAN_OUTPUT_SHARE = 1 / 64;
const LONGEST_MEAN_INPUT = 512;
const LONGEST_MEAN_OUTPUT = 128;
/** Spread of the lengths of an open load, of the normal distribution behind the log-normal one. */
const LENGTH_SIGMA = 0.7;

/** Fewest and most requests of an open load. */
const REQUESTS = [24, 400] as const;
/** Requests of the simulated batch that shows the rate at saturation. */
const SATURATING = 200;

function meanLengths({ maxModelLen }: ProbeLimits): { inputTokens: number; outputTokens: number } {
  return {
    inputTokens: Math.max(8, Math.round(Math.min(LONGEST_MEAN_INPUT, maxModelLen * MEAN_INPUT_SHARE))),
    outputTokens: Math.max(4, Math.round(Math.min(LONGEST_MEAN_OUTPUT, maxModelLen * MEAN_OUTPUT_SHARE))),
  };
}

/** Single requests of several lengths, one after the other. */
export function singleProbe({ maxModelLen }: ProbeLimits, round: number): Probe {
  const requests = [1, 2].flatMap(() =>
    SINGLE_SHARES.map((share) => ({
      atMs: 0,
      inputTokens: Math.max(4, Math.round(Math.min(4096, maxModelLen * share) * (1 - 0.1 * round))),
      outputTokens: SINGLE_OUTPUT,
    })),
  );
  return { name: `single requests${numbered(round)}`, requests, isSequential: true };
}

/** Long prompts with short outputs, some of them beside each other. */
export function longProbe({ maxModelLen }: ProbeLimits, round: number, gapMs: number): Probe {
  const most = Math.min(16_384, maxModelLen - 8);
  const requests = [0.25, 0.9, 0.5, 0.75, 0.35, 0.6].map((share, i) => ({
    atMs: i * gapMs,
    inputTokens: Math.max(4, Math.round(most * share * (1 - 0.1 * round))),
    outputTokens: 8,
  }));
  return { name: `long prompts${numbered(round)}`, requests, isSequential: false };
}

/** Requests that all come at once, with short prompts for the cost of a sequence or long ones for that of context. */
export function batchProbe(limits: ProbeLimits, kind: 'batch' | 'context', size: number): Probe {
  const { inputTokens, outputTokens } = meanLengths(limits);
  const isLong = kind === 'context';
  const each = {
    atMs: 0,
    inputTokens: isLong
      ? Math.min(4 * inputTokens, limits.maxModelLen / 2)
      : Math.max(4, Math.round(inputTokens / 8)),
    outputTokens: isLong ? outputTokens : 2 * outputTokens,
  };
  const requests = Array.from({ length: size }, (_, i) => ({
    ...each,
    // Lengths that differ a little end at different times: batches of every size are seen.
    outputTokens: Math.max(2, Math.round(each.outputTokens * (0.6 + (0.8 * i) / size))),
  }));
  return { name: `${size} at once${isLong ? ', long prompts' : ''}`, requests, isSequential: false };
}

/** Poisson arrivals at a rate, requests/s, with log-normal lengths about the server's mean lengths. */
function openProbe(limits: ProbeLimits, rate: number, count: number, seed: number): Probe {
  const random = new RandomStream(seed, 'probe');
  const { inputTokens, outputTokens } = meanLengths(limits);
  const drawn = (mean: number, most: number) =>
    Math.max(
      4,
      Math.min(Math.round(most), Math.round(mean * random.lognormal(-(LENGTH_SIGMA ** 2) / 2, LENGTH_SIGMA))),
    );
  let atMs = 0;
  const requests = Array.from({ length: count }, () => {
    atMs += random.exponential(1000 / rate);
    return {
      atMs,
      inputTokens: drawn(inputTokens, limits.maxModelLen / 2),
      outputTokens: drawn(outputTokens, limits.maxModelLen / 4),
    };
  });
  return { name: `${Number(rate.toPrecision(2))} requests/s`, requests, isSequential: false };
}

/** An open load at a share of the rate that saturates the server, as far as the profile tells. */
export function openLoad(
  share: number,
  profile: EngineProfile,
  facts: ServerFacts,
  { seconds, seed }: { readonly seconds: number; readonly seed: number },
): Probe {
  const saturating = openProbe(facts, 1e6, SATURATING, 0);
  const rate = (1000 * share * SATURATING) / simulateProbe(saturating, profile, facts).simulatedMs;
  const count = Math.round(Math.min(Math.max(seconds * rate, REQUESTS[0]), REQUESTS[1]));
  // A resumed run names the same load the same, whatever the rate has come to.
  return { ...openProbe(facts, rate, count, seed), name: `${Math.round(100 * share)} % of saturation` };
}

export function simulateProbe(
  { requests }: Pick<Probe, 'requests'>,
  profile: EngineProfile,
  { maxNumSeqs, maxNumBatchedTokens, kvBlocks }: EngineLimits,
): SimulationRun {
  const trace = {
    source: 'probe',
    arrivalMs: Float64Array.from(requests, ({ atMs }) => atMs),
    inputTokens: Int32Array.from(requests, ({ inputTokens }) => inputTokens),
    outputTokens: Int32Array.from(requests, ({ outputTokens }) => outputTokens),
  };
  return simulateTrace(trace, { profile, maxNumSeqs, maxNumBatchedTokens, kvBlocks });
}

/** Loads that confirm a profile: rates from a fifth of saturation to all of it, with lengths of their own. */
export function confirmingLoads(profile: EngineProfile, facts: ServerFacts, seconds: number): Probe[] {
  return [0.2, 0.4, 0.6, 0.8, 1].map((share, i) =>
    openLoad(share, profile, facts, { seconds, seed: 1000 + i }),
  );
}

/** A trace as a load, with the prefixes that its prompts share. */
export function traceProbe(name: string, trace: Trace): Probe {
  const { arrivalMs, inputTokens, outputTokens, prefixBlocks } = trace;
  const requests = Array.from(arrivalMs, (atMs, i) => ({
    atMs: atMs - arrivalMs[0],
    inputTokens: inputTokens[i],
    outputTokens: outputTokens[i],
    ...(prefixBlocks && {
      prefix: {
        blockTokens: prefixBlocks.blockTokens,
        ids: prefixBlocks.ids.subarray(prefixBlocks.offsets[i], prefixBlocks.offsets[i + 1]),
      },
    }),
  }));
  return { name, requests, isSequential: false };
}

export function allTokens({ requests }: Pick<Probe, 'requests'>): number {
  return requests.reduce((sum, { inputTokens, outputTokens }) => sum + inputTokens + outputTokens, 0);
}

/** Requests at once and the longest context that loads have shown. */
export function seenIn(loads: readonly MeasuredLoad[]) {
  const requests = loads.flatMap((load) => load.requests);
  const most = (values: readonly number[]) => values.reduce((a, b) => Math.max(a, b), 0);
  const rates = loads.flatMap((load) => {
    const span = load.requests.at(-1)!.arrivalMs;
    // A batch that comes at once has no rate, however long a client takes to send it.
    return load.requests.length < 10 || span < load.requests[0].e2eMs
      ? []
      : [(1000 * (load.requests.length - 1)) / span];
  });
  const batch = loads.map(({ requests }) => {
    const ends = requests.map(({ arrivalMs, e2eMs }) => arrivalMs + e2eMs);
    return most(
      requests.map(
        ({ arrivalMs }) => requests.filter((r, i) => r.arrivalMs <= arrivalMs && ends[i] > arrivalMs).length,
      ),
    );
  });
  return {
    rate: most(rates),
    batch: most(batch),
    prompt: most(requests.map(({ inputTokens }) => inputTokens)),
    context: most(requests.map(({ inputTokens, outputTokens }) => inputTokens + outputTokens)),
  };
}

function numbered(round: number): string {
  return round === 0 ? '' : ` ${round + 1}`;
}

/** Means and p99, ms. */
type Times = Readonly<Record<'ttft' | 'tpot' | 'e2e', Pick<Summary, 'mean' | 'p99'>>>;

/** A load that a server served, beside its prediction. */
export type LoadComparison = ReturnType<typeof compareLoad>;

/** Predicts a measured load: the same lengths on the simulated server, at the same times or from as many clients. */
export function compareLoad(
  load: MeasuredLoad,
  profile: EngineProfile,
  {
    maxNumSeqs,
    maxNumBatchedTokens,
    kvBlocks,
    weights,
  }: Partial<EngineLimits & { weights: WeightPrecision }>,
) {
  const { trace, measured } = fittedLoad(load);
  const { concurrency } = load;
  const run = simulateTrace(trace, {
    ...{ profile, weights, maxNumSeqs, maxNumBatchedTokens, kvBlocks, concurrency },
  });
  const measuredMs = timesOf(measured);
  const predictedMs = timesOf(run);
  const error = (what: keyof Times, of: 'mean' | 'p99') =>
    100 * (predictedMs[what][of] / measuredMs[what][of] - 1);
  /** Percent, positive when the prediction is longer. */
  const errors = (what: keyof Times) => ({ mean: error(what, 'mean'), p99: error(what, 'p99') });
  return {
    name: load.source,
    requests: load.requests.length,
    failed: load.failed,
    measuredMs,
    predictedMs,
    errors: { ttft: errors('ttft'), tpot: errors('tpot'), e2e: errors('e2e') },
  };
}

function timesOf({ ttftMs, tpotMs, e2eMs }: Readonly<Record<`${keyof Times}Ms`, Float64Array>>): Times {
  return {
    ttft: summarize(ttftMs),
    tpot: summarize(tpotMs.filter(Number.isFinite)),
    e2e: summarize(e2eMs),
  };
}
