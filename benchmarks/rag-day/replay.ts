import {
  findGpu,
  findModel,
  type ReadTables,
  readOperatorTables,
  statedOverheads,
  tableProfile,
} from '@servegym/profiles';
import {
  type EngineProfile,
  Fleet,
  type FleetSettings,
  IterationTimer,
  kvAware,
  msFromTicks,
  PromptChains,
  simulateTrace,
  TICKS_PER_S,
  type Trace,
} from '@servegym/simulator';
import study from './study.json' with { type: 'json' };

export interface Parallel {
  readonly tensor: number;
  readonly data: number;
  readonly expert: number;
}

/** Engines of one role. */
export interface Pool {
  readonly replicas: number;
  readonly parallel: Parallel;
  readonly maxNumBatchedTokens: number;
  readonly maxNumSeqs: number;
}

/** A configuration of the study: `prefill` apart where it is there, else `decode` serves whole requests. */
export interface Deployment {
  readonly engine: string;
  readonly prefill?: Pool;
  readonly decode: Pool;
  /** Default: in turns. */
  readonly router?: { readonly overlapScoreCredit: number; readonly prefillLoadScale: number };
  readonly autoscaler?: Autoscaler;
}

interface Autoscaler {
  /** Period of the fewest engines by the last period's traffic. */
  readonly throughputSeconds: number;
  /** Period of one engine more or less by the queues. */
  readonly loadSeconds: number;
  /** An engine leaves when those that stay would take at most this of the SLA. */
  readonly downPercent: number;
}

export type HourScore = Tally['hours'][number];
export type Score = ReturnType<Tally['score']>;

const DAY_S = 86_400;
const MOST_REPLICAS = 32;
const { sla, fixed } = study;

/** Engines of the study from kernel tables, made when first asked for. */
export class Engines {
  readonly #folder: string;
  /** Whether an iteration is its kernels alone, as in the study, without what the engine adds. */
  readonly #kernelsAlone: boolean;
  readonly #tables = new Map<string, Promise<ReadTables>>();
  readonly #profiles = new Map<string, Promise<EngineProfile>>();

  constructor(folder: string, kernelsAlone: boolean) {
    this.#folder = folder;
    this.#kernelsAlone = kernelsAlone;
  }

  /** Makes the profiles of a deployment, so that a replay does not. */
  async load({ engine, prefill, decode }: Deployment): Promise<void> {
    for (const { parallel } of [prefill ?? decode, decode]) await this.profile(engine, parallel);
  }

  profile(engine: string, parallel: Parallel): Promise<EngineProfile> {
    const name = JSON.stringify([engine, parallel]);
    const profile = this.#profiles.get(name) ?? this.#make(engine, parallel);
    this.#profiles.set(name, profile);
    return profile;
  }

  async #make(name: string, parallel: Parallel): Promise<EngineProfile> {
    const gpu = findGpu(study.gpu);
    const reading = this.#tables.get(name) ?? readOperatorTables(this.#folder, gpu, name);
    this.#tables.set(name, reading);
    const { tables, measuredOn, engine } = await reading;
    const overheads = statedOverheads(name.startsWith('sglang') ? 'sglang' : 'vllm', null).values;
    const none = {
      ...{ iterationUs: 0, perLayerUs: 0, parallelPerLayerUs: 0, prefillPerLayerUs: 0, perSequenceUs: 0 },
      ...{ requestOverheadMs: 0, requestOverheadPerTokenUs: 0 },
    };
    const { profile } = tableProfile(tables, {
      ...{ gpu, measuredOn, engine, model: findModel(study.model), weights: 'FP8', kvCache: 'FP8' },
      parallel: { ...parallel, pipeline: 1 },
      overheads: this.#kernelsAlone ? { ...overheads, ...none } : overheads,
      ...{ source: 'aiconfigurator-core', command: '' },
    });
    return {
      ...profile,
      memory: { ...profile.memory, blockTokens: fixed.blockTokens, utilization: fixed.memoryUtilization },
      transfer: { gigabytesPerSecond: fixed.transferGBps, setupMs: 0 },
    };
  }
}

/** Serves a day, or a part of it, of which `seconds` count. */
export async function replay(
  day: Trace,
  { engine, prefill, decode, router, autoscaler }: Deployment,
  engines: Engines,
  seconds = DAY_S,
): Promise<Score> {
  const of = async ({ parallel, maxNumBatchedTokens, maxNumSeqs }: Pool) => ({
    ...{ profile: await engines.profile(engine, parallel), weights: 'FP8' as const },
    ...{ maxNumBatchedTokens, maxNumSeqs },
  });
  const [first, second] = [await of(prefill ?? decode), await of(decode)];
  if (autoscaler !== undefined && prefill !== undefined)
    return autoscaled(day, prefill, decode, autoscaler, first.profile, seconds);
  const run = simulateTrace(day, {
    ...first,
    ...(prefill === undefined
      ? { replicas: decode.replicas }
      : { split: { prefill: prefill.replicas, decode: decode.replicas }, secondPool: second }),
    ...(router !== undefined && { policy: kvAware(router) }),
  });
  const gpus =
    decode.replicas * second.profile.gpu.count +
    (prefill === undefined ? 0 : prefill.replicas * first.profile.gpu.count);
  const tally = new Tally(day, seconds);
  for (let i = 0; i < run.completed; i++) tally.add(run.ids[i], run.ttftMs[i], run.tpotMs[i]);
  const { cachedTokens, prefillTokens } = run.counters;
  for (const hour of tally.hours) hour.gpuHours = gpus;
  return tally.score(gpus, cachedTokens / (cachedTokens + prefillTokens));
}

/** Counts what meets the SLA. */
class Tally {
  readonly hours = Array.from({ length: 24 }, () => ({
    ...{ requests: 0, compliant: 0, compliantTokens: 0, ttftMs: 0, itlMs: 0, gpuHours: 0 },
  }));
  readonly #day: Trace;
  readonly #seconds: number;

  constructor(day: Trace, seconds: number) {
    this.#day = day;
    this.#seconds = seconds;
  }

  add(id: number, ttftMs: number, tpotMs: number): void {
    const hour = this.hours[Math.min(23, Math.floor(this.#day.arrivalMs[id] / 3_600_000))];
    const itlMs = Number.isNaN(tpotMs) ? 0 : tpotMs;
    hour.requests++;
    hour.ttftMs += ttftMs;
    hour.itlMs += itlMs;
    if (ttftMs > sla.ttftMs || itlMs > sla.tpotMs) return;
    hour.compliant++;
    hour.compliantTokens += this.#day.outputTokens[id];
  }

  /**
   * The score of what was counted; latencies of its hours are means.
   * @param prefixReuse share of the prompt tokens that were found in a cache
   */
  score(averageGpus: number, prefixReuse: number) {
    const sum = (of: 'compliant' | 'compliantTokens') =>
      this.hours.reduce((total, hour) => total + hour[of], 0);
    const hours = this.hours.map((hour) => ({
      ...hour,
      ttftMs: hour.ttftMs / hour.requests,
      itlMs: hour.itlMs / hour.requests,
    }));
    return {
      goodputPerGpu: sum('compliantTokens') / this.#seconds / averageGpus,
      coverage: sum('compliant') / this.#day.arrivalMs.length,
      ...{ averageGpus, prefixReuse, hours },
    };
  }
}

/**
 * Serves the day with engines that come and go, by the two rules of Dynamo's planner: at least as many as the last
 * period's traffic needs within the SLA, and one more or less by what the present queues predict. Engines of both roles are
 * of one kind and share the limits of those that decode, and the gateway weighs queues and prefixes alike.
 */
function autoscaled(
  day: Trace,
  prefill: Pool,
  decode: Pool,
  { throughputSeconds, loadSeconds, downPercent }: Autoscaler,
  profile: EngineProfile,
  seconds: number,
): Score {
  const tally = new Tally(day, seconds);
  const settings = (prefillers: number, decoders: number): FleetSettings => ({
    replicas: [prefillers + decoders],
    prefillReplicas: prefillers,
    routing: { queue: 1, cache: 0, prefix: 1 },
    admissionSeconds: Number.POSITIVE_INFINITY,
    ...{ maxNumBatchedTokens: decode.maxNumBatchedTokens, maxNumSeqs: decode.maxNumSeqs },
  });
  let input = 0;
  let output = 0;
  let arrived = 0;
  let [prefillers, decoders] = [prefill.replicas, decode.replicas];
  const pools = [{ profile, weights: 'FP8' as const, coldStartSeconds: [0, 0] as const }];
  const fleet = new Fleet(
    settings(prefillers, decoders),
    { pools },
    {
      firstTokens: () => {},
      completions: ({ count, ids, arrivals, firstTokens, lastTokens, outputs }) => {
        for (let i = 0; i < count; i++) {
          const tpotMs = msFromTicks(lastTokens[i] - firstTokens[i]) / (outputs[i] - 1);
          tally.add(ids[i], msFromTicks(firstTokens[i] - arrivals[i]), tpotMs);
        }
      },
      refused: () => {},
    },
  );
  const timer = new IterationTimer(profile.weights.FP8!.law);
  const prefillMs = (tokens: number) => msFromTicks(timer.fixedTicks(tokens, 0, tokens ** 2 / 2));
  const itlMs = (sequences: number, context: number) =>
    msFromTicks(timer.decodeTicks(sequences) + timer.contextTicks(sequences) * sequences * context);
  let fewest = [1, 1];
  const chains = PromptChains.of(day.prefixBlocks!);
  const count = day.arrivalMs.length;
  let billedBefore = 0;
  for (
    let next = 0, now = 0;
    now < seconds || next < count || fleet.replicas.some(({ requests }) => requests > 0);
  ) {
    now += loadSeconds;
    const before = next;
    for (; next < count && day.arrivalMs[next] < 1000 * now; next++) {
      const [tokens, answer] = [day.inputTokens[next], day.outputTokens[next]];
      fleet.submit({
        ...{ id: next, arrival: Math.round((day.arrivalMs[next] / 1000) * TICKS_PER_S), priority: 0 },
        ...{ input: tokens, output: answer, prefix: chains.prefixOf(next, tokens, answer) },
      });
      input += tokens;
      output += answer;
    }
    arrived += next - before;
    fleet.runUntil(now * TICKS_PER_S);
    const ready = (role: 'prefill' | 'mixed') =>
      fleet.replicas
        .filter(({ engine, state }) => engine.role === role && state !== 'draining')
        .map(({ requests }) => requests);
    const [meanInput, meanOutput] = [input / Math.max(1, next), output / Math.max(1, next)];
    const context = meanInput + meanOutput / 2;
    if (now % throughputSeconds < loadSeconds) {
      const rate = arrived / throughputSeconds;
      arrived = 0;
      const most = largest((sequences) => itlMs(sequences, context) <= sla.tpotMs, decode.maxNumSeqs);
      fewest = [
        (rate * prefillMs(meanInput)) / 1000,
        rate / ((1000 * most) / (itlMs(most, context) * meanOutput)),
      ].map((engines) => Math.max(1, Math.ceil(engines)));
    }
    const waitMs = (requests: number) => (requests + 1) * prefillMs(meanInput);
    const stepMs = (requests: number) => itlMs(Math.max(1, Math.round(requests)), context);
    const down = downPercent / 100;
    decoders = Math.max(fewest[1], scaledTo(ready('mixed'), sla.tpotMs, stepMs, down));
    prefillers = Math.max(fewest[0], scaledTo(ready('prefill'), sla.ttftMs, waitMs, down));
    prefillers = Math.min(prefillers, MOST_REPLICAS - decoders);
    fleet.configure(settings(prefillers, decoders));
    const { starting, ready: serving, draining } = fleet.replicaSeconds(0);
    const billed = ((starting + serving + draining) * profile.gpu.count) / 3600;
    tally.hours[Math.min(23, Math.floor((now - 1) / 3600))].gpuHours += billed - billedBefore;
    billedBefore = billed;
    fleet.events.length = 0;
  }
  const { cachedTokens, prefillTokens } = fleet.counters();
  return tally.score(
    (3600 * billedBefore) / (fleet.now / TICKS_PER_S),
    cachedTokens / (cachedTokens + prefillTokens),
  );
}

/** One engine more where all of them are above the limit; one less where those that stay would be below a share of it. */
function scaledTo(
  queues: readonly number[],
  limitMs: number,
  at: (requests: number) => number,
  down: number,
) {
  const stay = queues.length - 1;
  if (queues.every((requests) => at(requests) > limitMs)) return queues.length + 1;
  const total = queues.reduce((sum, requests) => sum + requests, 0);
  return stay >= 1 && at(total / stay) < limitMs * down ? stay : queues.length;
}

/** The largest whole number from 1 to `most` that fits. */
function largest(fits: (value: number) => boolean, most: number): number {
  let low = 1;
  for (let high = most; low < high; ) {
    const middle = (low + high + 1) >> 1;
    if (fits(middle)) low = middle;
    else high = middle - 1;
  }
  return low;
}
