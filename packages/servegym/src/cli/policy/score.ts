import { REQUEST_CLASSES } from '@servegym/environments';
import { TICKS_PER_S } from '@servegym/simulator';
import { mean, percentileOfSorted, stratifiedBootstrap } from '@servegym/simulator/statistics';
import type { Trial, TrialResult } from './trial.ts';

/** Latency objectives of a class, ms; a request is late by the worst of those given. */
interface Objective {
  readonly ttftMs?: number;
  readonly tpotMs?: number;
  readonly e2eMs?: number;
}

export interface Worth {
  readonly objectives: Readonly<Record<string, Objective>>;
  readonly prices: Readonly<
    Record<string, { readonly usdPerMillionInput: number; readonly usdPerMillionOutput: number }>
  >;
}

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

/** Latencies of an answer, ms; `NaN` where there is none. TPOT is 0 where it has one token. */
function latencies({ requests }: Trial, { arrivals, firstTokens, lastTokens }: TrialResult, i: number) {
  const ttft = (1000 * (firstTokens[i] - arrivals[i])) / TICKS_PER_S;
  const e2e = (1000 * (lastTokens[i] - arrivals[i])) / TICKS_PER_S;
  const tokens = requests.outputTokens[i];
  return { ttft, e2e, tpot: tokens > 1 ? (e2e - ttft) / (tokens - 1) : 0 };
}

/** Share of its price that an answer is worth: all inside its objectives, nothing where there is none. */
function worthShare({ ttft, tpot, e2e }: ReturnType<typeof latencies>, objective: Objective): number {
  if (Number.isNaN(e2e)) return 0;
  const { ttftMs = Infinity, tpotMs = Infinity, e2eMs = Infinity } = objective;
  return Math.min(1, ttftMs / ttft, tpot === 0 ? 1 : tpotMs / tpot, e2eMs / e2e);
}

/** Price of a request, USD. */
function priceOf({ requests }: Trial, { prices }: Worth, i: number): number {
  const price = prices[REQUEST_CLASSES[requests.classes[i]]];
  const input = requests.inputTokens[i] * price.usdPerMillionInput;
  return (input + requests.outputTokens[i] * price.usdPerMillionOutput) / 1e6;
}

/**
 * The figures of a trace. A request inside its objectives is worth its price, a late one the share objective / latency of it,
 * one without an answer nothing. `value` is what all are worth less the bill, over the price of all.
 */
export function traceFigures(trial: Trial, result: TrialResult, worths: Worth) {
  const { requests, pools } = trial;
  const { arrivals, lastTokens, refused, replicaSeconds } = result;
  const { outputTokens, classes, texts } = requests;
  let [price, worth, attained, answered, last] = [0, 0, 0, 0, 0];
  let firstViolation = Number.POSITIVE_INFINITY;
  const tenants = new Map<number, { price: number; worth: number }>();
  const kinds = REQUEST_CLASSES.map(
    (name): ClassRequests => ({ name, requests: 0, refused: 0, ttft: [], tpot: [] }),
  );
  for (let i = 0; i < arrivals.length; i++) {
    // A later turn of a conversation whose turn before had no answer never came.
    const kind = kinds[classes[i]];
    const usd = priceOf(trial, worths, i);
    price += usd;
    kind.requests++;
    kind.refused += refused[i];
    const tenant = texts.offsets[i + 1] > texts.offsets[i] ? texts.ids[texts.offsets[i]] : -1;
    const of = tenants.get(tenant) ?? { price: 0, worth: 0 };
    tenants.set(tenant, of);
    of.price += usd;
    const times = latencies(trial, result, i);
    if (!Number.isNaN(times.e2e)) {
      answered++;
      kind.ttft.push(times.ttft);
      if (outputTokens[i] > 1) kind.tpot.push(times.tpot);
      last = Math.max(last, lastTokens[i]);
    }
    const share = worthShare(times, worths.objectives[kind.name]);
    worth += share * usd;
    of.worth += share * usd;
    if (share === 1) attained++;
    else if (arrivals[i] < firstViolation) firstViolation = arrivals[i];
  }
  const bill = replicaSeconds.map((seconds, pool) => {
    const { gpu } = pools[pool].profile;
    return (seconds / 3600) * gpu.count * gpu.usdPerHour;
  });
  const usd = bill.reduce((sum, each) => sum + each, 0);
  const shares = Array.from(tenants.values(), (each) => each.worth / each.price);
  return {
    value: (worth - usd) / price,
    classes: kinds.filter((kind) => kind.requests > 0),
    requests: arrivals.length,
    answered,
    attainment: attained / arrivals.length,
    goodputRps: last === 0 ? 0 : attained / (last / TICKS_PER_S),
    usd,
    fairness: jainIndex(shares),
    firstViolationS: Number.isFinite(firstViolation) ? Math.floor(firstViolation / TICKS_PER_S) : null,
  };
}

/** Requests of the worst minute that are shown one by one. */
const SHOWN = 10;

/**
 * The minute of arrivals in which a policy lost most against the default, with the figures of both, the requests that wait and
 * those that are answered at each of its 61 seconds, and the requests that lost most; `null` where it never lost more.
 */
export function worstMinute(
  trial: Trial,
  results: readonly [policy: TrialResult, standard: TrialResult],
  worths: Worth,
) {
  const { requests } = trial;
  const lost = results.map((result) =>
    Float64Array.from(requests.classes, (kind, i) => {
      const share = worthShare(latencies(trial, result, i), worths.objectives[REQUEST_CLASSES[kind]]);
      return (1 - share) * priceOf(trial, worths, i);
    }),
  );
  const minuteOf = ({ arrivals }: TrialResult, i: number) => Math.floor(arrivals[i] / (60 * TICKS_PER_S));
  const [losses, others] = results.map((result, r) => {
    const sums: Record<number, number> = {};
    for (const [i, usd] of lost[r].entries())
      sums[minuteOf(result, i)] = (sums[minuteOf(result, i)] ?? 0) + usd;
    return sums;
  });
  let [worst, most] = [-1, 0];
  for (const [minute, usd] of Object.entries(losses)) {
    const more = usd - (others[Number(minute)] ?? 0);
    // Requests that never came have no minute.
    if (more > most && minute !== 'NaN') [worst, most] = [Number(minute), more];
  }
  if (worst < 0) return null;
  const idsOf = (result: TrialResult) =>
    Array.from(requests.classes.keys()).filter((i) => minuteOf(result, i) === worst);
  const [policy, standard] = results.map((result, r) => {
    const ids = idsOf(result);
    const ttft = Float64Array.from(ids, (i) => latencies(trial, result, i).ttft)
      .filter(Number.isFinite)
      .sort();
    const [ttftP50Ms, ttftP99Ms] = [50, 99].map((percent) => percentileOfSorted(ttft, percent));
    return {
      requests: ids.length,
      attainment: ids.filter((i) => lost[r][i] === 0).length / ids.length,
      lostUsd: ids.reduce((sum, i) => sum + lost[r][i], 0),
      ...{ ttftP50Ms, ttftP99Ms },
      ...countsOf(result, 60 * worst),
    };
  });
  const [first, second] = results;
  const losers = idsOf(first)
    .sort((a, b) => lost[0][b] - lost[1][b] - (lost[0][a] - lost[1][a]))
    .slice(0, SHOWN)
    .map((i) => ({
      arrivalS: first.arrivals[i] / TICKS_PER_S,
      class: REQUEST_CLASSES[requests.classes[i]],
      promptTokens: requests.inputTokens[i],
      outputTokens: requests.outputTokens[i],
      ttftMs: latencies(trial, first, i).ttft,
      defaultTtftMs: latencies(trial, second, i).ttft,
    }));
  return { fromS: 60 * worst, policy, default: standard.requests === 0 ? null : standard, losers };
}

/** Requests that wait for their first token, and that get tokens, at each second of a minute and at its end. */
function countsOf({ arrivals, firstTokens, lastTokens, refused }: TrialResult, fromS: number) {
  const at = Array.from({ length: 61 }, (_, second) => (fromS + second) * TICKS_PER_S);
  const count = (holds: (i: number, tick: number) => boolean) =>
    at.map((tick) => arrivals.reduce((sum, _, i) => sum + Number(holds(i, tick)), 0));
  return {
    waiting: count((i, tick) => arrivals[i] <= tick && refused[i] === 0 && !(firstTokens[i] <= tick)),
    running: count((i, tick) => firstTokens[i] <= tick && !(lastTokens[i] <= tick)),
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
    const [ttftP50Ms, ttftP99Ms] = [50, 99].map((percent) => percentileOfSorted(ttft, percent));
    const [tpotP50Ms, tpotP99Ms] = [50, 99].map((percent) => percentileOfSorted(tpot, percent));
    const [requests, refused] = [sum((each) => each.requests), sum((each) => each.refused)];
    const latencies = { ttftP50Ms, ttftP99Ms, tpotP50Ms, tpotP99Ms };
    return { name, requests, answered: ttft.length, refused, ...latencies };
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

/** 0 for the default and 1 for the best known. */
export const combinedScore = (played: readonly PlayedTrace[]) =>
  scored(played, (at) => at.policy - at.default);

/** The score of one policy less that of another on the same traces. */
export const scoreDifference = (first: readonly PlayedTrace[], second: readonly PlayedTrace[]) =>
  scored(first, (at, i) => at.policy - second[i].policy);

/** Least gain of the best known that a score of 1 stands for, as a share of the price of all requests: a choice. */
export const LEAST_UNIT = 0.001;

/** A score over traces with its 95 % interval over the traces. */
function scored(played: readonly PlayedTrace[], gainOf: (at: PlayedTrace, i: number) => number) {
  const unit = Math.max(LEAST_UNIT, mean(played.map((at) => at.best - at.default)));
  const gains = played.map((at, i) => gainOf(at, i) / unit);
  return { score: mean(gains), ci95: stratifiedBootstrap([gains], mean) };
}
