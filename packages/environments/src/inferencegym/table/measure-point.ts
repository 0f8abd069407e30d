import {
  acceptanceTable,
  Engine,
  type EngineProfile,
  engineOptionsOf,
  msFromTicks,
  RandomStream,
  TICKS_PER_MS,
  TICKS_PER_S,
  type WeightPrecision,
  weightVariant,
} from '@servegym/simulator';
import { percentileOfSorted } from '@servegym/simulator/statistics';

/** A configuration and a load to measure. */
export interface PointToMeasure {
  readonly weights: WeightPrecision;
  /** Most sequences that run at once. */
  readonly maxNumSeqs: number;
  readonly kvBlocks: number;
  readonly speculationDepth: number;
  /** Every prompt has this many tokens. */
  readonly promptTokens: number;
  /** Mean output, tokens; outputs are uniform from half of it to one and a half. */
  readonly outputTokens: number;
}

/** Measurements of a load generator. */
export interface MeasuredPoint {
  readonly ttftP50Ms: number;
  readonly ttftP99Ms: number;
  readonly tpotMs: number;
  /** Output tokens a second. */
  readonly tps: number;
}

/** Clients wait this long before they send the next request: as often as the load generator looks, ticks. */
const LOOK_TICKS = 10 * TICKS_PER_MS;
/** Generations of requests that are measured after the first, which only fills the server. */
const GENERATIONS = 2;
const FEWEST_REQUESTS = 48;

/**
 * Measures a configuration as a load generator does: `maxNumSeqs` clients, each of which sends its next request when the
 * last is answered; fewer where the KV pool holds fewer, since the others would only wait for one another.
 */
export function measurePoint(profile: EngineProfile, point: PointToMeasure): MeasuredPoint {
  const { promptTokens, outputTokens, speculationDepth } = point;
  const engine = new Engine(
    {
      law: weightVariant(profile, point.weights).law,
      maxNumSeqs: point.maxNumSeqs,
      kvBlocks: point.kvBlocks,
      schedulingPolicy: 'fcfs',
      speculationDepth,
      speculation: profile.speculation,
      survival: speculationDepth > 0 ? acceptanceTable(profile, 'sharegpt') : [],
    },
    // The table of the environment keeps its results: measured without look-ahead slots.
    { ...engineOptionsOf(profile, false), drafter: 'ngram' },
  );
  const random = new RandomStream(0, 'output lengths');
  const held = (point.kvBlocks * profile.memory.blockTokens) / (promptTokens + outputTokens / 2);
  const clients = Math.max(1, Math.min(point.maxNumSeqs, Math.floor(held)));
  let sent = 0;
  const send = (output: number) => {
    engine.submit({ id: sent, arrival: Math.max(0, engine.now), input: promptTokens, output });
    sent++;
  };
  const halfOutput = Math.max(1, Math.round(outputTokens / 2));
  // The first generation ends at all times, so that the clients do not march in step.
  for (let client = 0; client < clients; client++) send(random.integer(1, outputTokens + halfOutput));

  const wanted = Math.max(FEWEST_REQUESTS, GENERATIONS * clients);
  let seen = 0;
  let tokens = 0;
  let start = 0;
  const ttft: number[] = [];
  let tpotSum = 0;
  while (ttft.length < wanted) {
    engine.runUntil(engine.now + LOOK_TICKS);
    const { completions } = engine;
    const warm = seen >= clients;
    for (let i = 0; i < completions.count; i++) {
      seen++;
      send(random.integer(halfOutput, outputTokens + halfOutput));
      if (!warm) continue;
      ttft.push(msFromTicks(completions.firstTokens[i] - completions.arrivals[i]));
      const gaps = Math.max(1, completions.outputs[i] - 1);
      tpotSum += msFromTicks(completions.lastTokens[i] - completions.firstTokens[i]) / gaps;
    }
    if (warm) tokens += engine.counters.outputTokens;
    else start = engine.now;
    engine.clearLogs();
  }
  const sorted = Float64Array.from(ttft).sort();
  return {
    ttftP50Ms: percentileOfSorted(sorted, 50),
    ttftP99Ms: percentileOfSorted(sorted, 99),
    tpotMs: tpotSum / ttft.length,
    tps: (tokens * TICKS_PER_S) / (engine.now - start),
  };
}
