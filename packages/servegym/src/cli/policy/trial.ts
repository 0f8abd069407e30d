import type { FleetRequests } from '@servegym/environments';
import {
  type EngineProfile,
  Fleet,
  type FleetFault,
  type FleetSettings,
  type PolicyFault,
  type PolicyFunctions,
  TICKS_PER_S,
} from '@servegym/simulator';

/** Requests of a trial as plain columns, which go to another process. */
export interface TrialRequests extends Omit<FleetRequests, 'texts'> {
  /** Texts of prompts: those of request i are `ids[offsets[i]] .. ids[offsets[i + 1] - 1]`, and end at `ends`. */
  readonly texts: { readonly ids: Int32Array; readonly ends: Int32Array; readonly offsets: Int32Array };
}

/** A trace and the fleet that serves it. */
export interface Trial {
  readonly requests: TrialRequests;
  readonly pools: readonly {
    readonly profile: EngineProfile;
    readonly coldStartSeconds: readonly [number, number];
  }[];
  readonly settings: FleetSettings;
  readonly maxReplicas: number;
  readonly metricsIntervalMs: number;
  readonly seed: number;
  readonly faults: readonly FleetFault[];
  /** Seconds after the last arrival at which what is not answered is given up. */
  readonly patienceSeconds: number;
}

/** What became of each request. Ticks; NaN where it did not happen. */
export interface TrialResult {
  readonly arrivals: Float64Array;
  readonly firstTokens: Float64Array;
  readonly lastTokens: Float64Array;
  readonly outputs: Int32Array;
  readonly refused: Uint8Array;
  /** Seconds for which replicas of each kind were billed. */
  readonly replicaSeconds: readonly number[];
  readonly faults: readonly PolicyFault[];
}

/** Serves a trace on a fleet. `standard` decides where the policy does not. */
export function runTrial(
  trial: Trial,
  policy: PolicyFunctions<unknown>,
  standard: PolicyFunctions,
): TrialResult {
  const { requests, pools, settings, maxReplicas, metricsIntervalMs, seed, patienceSeconds, faults } = trial;
  const { inputTokens, outputTokens, classes, starts, startTicks, nextTurn, thinkTicks, texts } = requests;
  const count = inputTokens.length;
  const arrivals = new Float64Array(count).fill(Number.NaN);
  const firstTokens = new Float64Array(count).fill(Number.NaN);
  const lastTokens = new Float64Array(count).fill(Number.NaN);
  const outputs = new Int32Array(count);
  const refused = new Uint8Array(count);
  let open = 0;
  const fleet = new Fleet(
    settings,
    { pools, maxReplicas, metricsIntervalMs, seed, faults, standard, policy: () => policy },
    {
      firstTokens(log) {
        for (let i = 0; i < log.count; i++)
          if (Number.isNaN(firstTokens[log.ids[i]])) firstTokens[log.ids[i]] = log.firstTokens[i];
      },
      completions(log) {
        for (let i = 0; i < log.count; i++) {
          const id = log.ids[i];
          lastTokens[id] = log.lastTokens[i];
          outputs[id] = log.outputs[i];
          open--;
          const next = nextTurn[id];
          if (next >= 0) arrive(next, log.lastTokens[i] + thinkTicks[next]);
        }
      },
      refused(id) {
        refused[id] = 1;
        open--;
      },
    },
  );
  function arrive(id: number, tick: number): void {
    const arrival = Math.max(tick, fleet.now);
    arrivals[id] = arrival;
    open++;
    const { ids, ends, offsets } = texts;
    const from = offsets[id];
    const to = offsets[id + 1];
    fleet.submit({
      ...{ id, arrival, input: inputTokens[id], output: outputTokens[id], priority: classes[id] },
      prefix:
        to === from
          ? null
          : {
              chunkTokens: 16,
              ids: ids.subarray(from, to),
              ends: ends.subarray(from, to),
              namedTokens: ends[to - 1],
            },
    });
  }
  const step = metricsIntervalMs / 1000;
  const end = startTicks[starts.length - 1] / TICKS_PER_S + patienceSeconds;
  let next = 0;
  for (let seconds = step; seconds < end && (open > 0 || next < starts.length); seconds += step) {
    const tick = seconds * TICKS_PER_S;
    for (; next < starts.length && startTicks[next] < tick; next++) arrive(starts[next], startTicks[next]);
    fleet.runUntil(tick);
    fleet.clearLogs();
  }
  const replicaSeconds = pools.map((_, pool) => {
    const { starting, ready, draining } = fleet.replicaSeconds(pool);
    return starting + ready + draining;
  });
  return { arrivals, firstTokens, lastTokens, outputs, refused, replicaSeconds, faults: fleet.policyFaults };
}

/**
 * Why a result cannot be: a request without one fate, of other tokens than it was to get, before its time, or faster than
 * the GPU reads its weights. `null` where all adds up. The process that computed it also ran a stranger's code.
 */
export function impossible({ requests, pools }: Trial, result: TrialResult): string | null {
  const { outputTokens, starts, startTicks, nextTurn, thinkTicks } = requests;
  const { arrivals, firstTokens, lastTokens, outputs, refused } = result;
  const due = new Float64Array(arrivals.length).fill(Number.NaN);
  for (let i = 0; i < starts.length; i++) due[starts[i]] = startTicks[i];
  for (let i = 0; i < arrivals.length; i++)
    if (nextTurn[i] >= 0) due[nextTurn[i]] = lastTokens[i] + thinkTicks[nextTurn[i]];
  const least = Math.min(
    ...pools.map(({ profile: { weights } }) => weights.FP16!.law.baseUs + weights.FP16!.law.weightReadUs),
  );
  const leastTicks = 0.99 * least * (TICKS_PER_S / 1e6);
  for (let i = 0; i < arrivals.length; i++) {
    const isAnswered = !Number.isNaN(lastTokens[i]);
    const span = lastTokens[i] - firstTokens[i];
    if (isAnswered && refused[i] === 1) return `request ${i} was both refused and answered`;
    if (isAnswered && outputs[i] !== outputTokens[i])
      return `request ${i} got ${outputs[i]} of ${outputTokens[i]} tokens`;
    if (!Number.isNaN(arrivals[i]) && !(arrivals[i] >= due[i])) return `request ${i} came before its time`;
    if (isAnswered && !(firstTokens[i] - arrivals[i] >= leastTicks && span >= leastTicks * (outputs[i] - 1)))
      return `request ${i} was answered faster than a GPU can`;
  }
  return null;
}
