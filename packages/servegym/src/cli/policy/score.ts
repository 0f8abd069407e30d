import { REQUEST_CLASSES } from '@servegym/environments';
import { TICKS_PER_S } from '@servegym/simulator';
import { type Interval, percentileOfSorted, stratifiedBootstrap } from '@servegym/simulator/statistics';
import type { Trial, TrialResult } from './trial.ts';

/** Latency objectives of a class, ms; a request is late by the worst of those given. */
interface Objective {
  readonly ttftMs?: number;
  readonly tpotMs?: number;
  readonly e2eMs?: number;
}

/** What requests are worth. */
export interface Worth {
  readonly objectives: Readonly<Record<string, Objective>>;
  readonly prices: Readonly<
    Record<string, { readonly usdPerMillionInput: number; readonly usdPerMillionOutput: number }>
  >;
}

/** Figures of one trace. */
export type TraceFigures = ReturnType<typeof traceFigures>;

/** Requests of one class, with the latencies of those that were answered, ms. */
interface ClassRequests {
  readonly name: string;
  requests: number;
  refused: number;
  readonly ttft: number[];
  /** Of answers of more than one token. */
  readonly tpot: number[];
}

/** Requests of one minute of arrivals. */
interface Minute {
  requests: number;
  attained: number;
  /** What they would be worth inside their objectives, less what they are worth. */
  lostUsd: number;
  /** Of those that were answered. */
  readonly ttftMs: number[];
}

/** The minute of an arrival; one that is nowhere for a request that never came. */
function minuteOf(minutes: Minute[], arrival: number): Minute {
  const at = Math.floor(arrival / (60 * TICKS_PER_S));
  const empty: Minute = { requests: 0, attained: 0, lostUsd: 0, ttftMs: [] };
  if (Number.isNaN(at)) return empty;
  minutes[at] ??= empty;
  return minutes[at];
}

/**
 * The figures of a trace. A request inside its objectives is worth its price, a late one the share objective / latency of it,
 * one without an answer nothing. `value` is what all are worth less the bill, over the price of all.
 */
export function traceFigures({ requests, pools }: Trial, result: TrialResult, { objectives, prices }: Worth) {
  const { arrivals, firstTokens, lastTokens, refused, replicaSeconds } = result;
  const { inputTokens, outputTokens, classes, texts } = requests;
  let [price, worth, attained, answered, last] = [0, 0, 0, 0, 0];
  let firstViolation = Number.POSITIVE_INFINITY;
  const minutes: Minute[] = [];
  const tenants = new Map<number, { price: number; worth: number }>();
  const kinds = REQUEST_CLASSES.map(
    (name): ClassRequests => ({ name, requests: 0, refused: 0, ttft: [], tpot: [] }),
  );
  for (let i = 0; i < arrivals.length; i++) {
    // A later turn of a conversation whose turn before had no answer never came.
    const kind = kinds[classes[i]];
    const { name } = kind;
    const usd =
      (inputTokens[i] * prices[name].usdPerMillionInput +
        outputTokens[i] * prices[name].usdPerMillionOutput) /
      1e6;
    price += usd;
    kind.requests++;
    kind.refused += refused[i];
    const tenant = texts.offsets[i + 1] > texts.offsets[i] ? texts.ids[texts.offsets[i]] : -1;
    const of = tenants.get(tenant) ?? { price: 0, worth: 0 };
    tenants.set(tenant, of);
    of.price += usd;
    const minute = minuteOf(minutes, arrivals[i]);
    minute.requests++;
    let share = 0;
    if (!Number.isNaN(lastTokens[i])) {
      answered++;
      const ttft = (1000 * (firstTokens[i] - arrivals[i])) / TICKS_PER_S;
      const e2e = (1000 * (lastTokens[i] - arrivals[i])) / TICKS_PER_S;
      const tpot = outputTokens[i] > 1 ? (e2e - ttft) / (outputTokens[i] - 1) : 0;
      kind.ttft.push(ttft);
      minute.ttftMs.push(ttft);
      if (outputTokens[i] > 1) kind.tpot.push(tpot);
      const { ttftMs = Infinity, tpotMs = Infinity, e2eMs = Infinity } = objectives[name];
      share = Math.min(1, ttftMs / ttft, tpot === 0 ? 1 : tpotMs / tpot, e2eMs / e2e);
      last = Math.max(last, lastTokens[i]);
    }
    worth += share * usd;
    minute.lostUsd += (1 - share) * usd;
    of.worth += share * usd;
    if (share === 1) {
      attained++;
      minute.attained++;
    } else if (arrivals[i] < firstViolation) firstViolation = arrivals[i];
  }
  const usd = replicaSeconds.reduce(
    (sum, seconds, pool) =>
      sum + (seconds / 3600) * pools[pool].profile.gpu.count * pools[pool].profile.gpu.usdPerHour,
    0,
  );
  const shares = Array.from(tenants.values(), (each) => each.worth / each.price);
  return {
    value: (worth - usd) / price,
    classes: kinds.filter((kind) => kind.requests > 0),
    minutes,
    requests: arrivals.length,
    answered,
    attainment: attained / arrivals.length,
    goodputRps: last === 0 ? 0 : attained / (last / TICKS_PER_S),
    usd,
    fairness: jainIndex(shares),
    firstViolationS: Number.isFinite(firstViolation) ? Math.floor(firstViolation / TICKS_PER_S) : null,
  };
}

/** The minute in which a policy lost most against the default, with the figures of both; `null` where it never lost more. */
export function worstMinute({ minutes }: TraceFigures, standard: TraceFigures) {
  const figuresOf = ({ requests, attained, lostUsd, ttftMs }: Minute) => {
    const ttft = Float64Array.from(ttftMs).sort();
    const [ttftP50Ms, ttftP99Ms] = [50, 99].map((percent) => percentileOfSorted(ttft, percent));
    return { requests, attainment: attained / requests, lostUsd, ttftP50Ms, ttftP99Ms };
  };
  let [worst, most] = [-1, 0];
  for (const [at, minute] of minutes.entries()) {
    const more = (minute?.lostUsd ?? 0) - (standard.minutes[at]?.lostUsd ?? 0);
    if (more > most) [worst, most] = [at, more];
  }
  const [policy, other] = [minutes[worst], standard.minutes[worst]];
  if (policy === undefined) return null;
  return {
    fromS: 60 * worst,
    policy: figuresOf(policy),
    default: other === undefined ? null : figuresOf(other),
  };
}

/** Counts and percentiles of each class over traces; `NaN` where no latency was measured. */
export function classFigures(traces: readonly TraceFigures[]) {
  const all = traces.flatMap(({ classes }) => classes);
  return REQUEST_CLASSES.flatMap((name) => {
    const of = all.filter((each) => each.name === name);
    if (of.length === 0) return [];
    const sum = (count: (each: ClassRequests) => number) =>
      of.reduce((total, each) => total + count(each), 0);
    const ttft = Float64Array.from(of.flatMap((each) => each.ttft)).sort();
    const tpot = Float64Array.from(of.flatMap((each) => each.tpot)).sort();
    return {
      name,
      requests: sum(({ requests }) => requests),
      answered: ttft.length,
      refused: sum(({ refused }) => refused),
      ttftP50Ms: percentileOfSorted(ttft, 50),
      ttftP99Ms: percentileOfSorted(ttft, 99),
      tpotP50Ms: percentileOfSorted(tpot, 50),
      tpotP99Ms: percentileOfSorted(tpot, 99),
    };
  });
}

/** Jain's index: 1 where all have the same, 1 / n where one has all. */
function jainIndex(shares: readonly number[]): number {
  const sum = shares.reduce((a, b) => a + b, 0);
  const squares = shares.reduce((a, b) => a + b * b, 0);
  return squares === 0 ? 1 : (sum * sum) / (shares.length * squares);
}

/** Values of a policy, of the default and of the best known on the same trace. */
export interface PlayedTrace {
  readonly policy: number;
  readonly default: number;
  readonly best: number;
}

/** A score over traces with its 95 % interval over the traces. */
interface Score {
  readonly score: number;
  readonly ci95: Interval;
}

/** 0 for the default and 1 for the best known. */
export function combinedScore(played: readonly PlayedTrace[]): Score {
  return scored(played, (at) => at.policy - at.default);
}

/** The score of one policy less that of another on the same traces. */
export function scoreDifference(first: readonly PlayedTrace[], second: readonly PlayedTrace[]): Score {
  return scored(first, (at, i) => at.policy - second[i].policy);
}

/** Least gain of the best known that a score of 1 stands for, as a share of the price of all requests: a choice. */
export const LEAST_UNIT = 0.001;

function scored(played: readonly PlayedTrace[], gainOf: (at: PlayedTrace, i: number) => number): Score {
  const mean = (values: ArrayLike<number>) =>
    Array.from(values).reduce((sum, each) => sum + each, 0) / values.length;
  const unit = Math.max(LEAST_UNIT, mean(played.map((at) => at.best - at.default)));
  const gains = played.map((at, i) => gainOf(at, i) / unit);
  return { score: mean(gains), ci95: stratifiedBootstrap([gains], mean) };
}
