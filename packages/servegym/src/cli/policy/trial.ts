import type { FleetRequests, FleetTask } from '@servegym/environments';
import {
  type CompletionLog,
  type EngineProfile,
  type FirstTokenLog,
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
  /** Predicted lengths of answers, and their mean error as a share, where a suite has them. */
  readonly predicted?: { readonly tokens: Int32Array; readonly error: number } | undefined;
}

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
  /** The fleet as a task, where the policy scales it. */
  readonly task?: FleetTask | undefined;
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
  const { inputTokens, outputTokens, classes, starts, startTicks, nextTurn, thinkTicks, predicted } =
    requests;
  let open = 0;
  const outcome = outcomeOf(requests, (id, tick) => {
    open--;
    const next = tick === null ? -1 : nextTurn[id];
    if (next >= 0) arrive(next, tick! + thinkTicks[next]);
  });
  const fleet = new Fleet(
    settings,
    { pools, maxReplicas, metricsIntervalMs, seed, faults, standard, policy: () => policy },
    outcome,
  );
  function arrive(id: number, tick: number): void {
    const arrival = Math.max(tick, fleet.now);
    outcome.columns.arrivals[id] = arrival;
    open++;
    fleet.submit({
      ...{ id, arrival, input: inputTokens[id], output: outputTokens[id], priority: classes[id] },
      prefix: prefixOf(requests, id),
      predicted: predicted && { tokens: predicted.tokens[id], error: predicted.error },
    });
  }
  const end = startTicks[starts.length - 1] / TICKS_PER_S + patienceSeconds;
  let next = 0;
  for (let seconds = 1; seconds < end && (open > 0 || next < starts.length); seconds++) {
    const tick = seconds * TICKS_PER_S;
    for (; next < starts.length && startTicks[next] < tick; next++) arrive(starts[next], startTicks[next]);
    fleet.runUntil(tick);
  }
  return outcome.result(fleet, pools.length, fleet.policyFaults);
}

/** Serves a trace on a fleet whose replicas the policy scales; `standard` chooses the replica of each request. */
export async function runScaledTrial(
  trial: Trial,
  policy: PolicyFunctions<unknown>,
  standard: PolicyFunctions,
): Promise<TrialResult> {
  const { FleetEpisode, scalingController } = await import('@servegym/environments');
  const { requests, seed, faults, pools } = trial;
  const listener = outcomeOf(requests);
  const texts = { prefixOf: (id: number) => prefixOf(requests, id)! };
  const watched = { faults, standard, listener, policy: () => policy as PolicyFunctions };
  const episode = new FleetEpisode(trial.task!, seed, { ...requests, texts }, watched);
  const controller = scalingController('policy', policy);
  while (!episode.done) {
    const { window: stepIndex, action: previousAction } = episode;
    episode.step(controller.act({ observation: episode.observation(), previousAction, stepIndex }));
  }
  for (const [i, tick] of episode.arrivalTicks.entries()) if (tick > 0) listener.columns.arrivals[i] = tick;
  const { fleet } = episode;
  return listener.result(fleet, pools.length, [...fleet.policyFaults, ...controller.faults]);
}

/** The text of a request's prompt that others share. */
function prefixOf({ texts: { ids, ends, offsets } }: TrialRequests, id: number) {
  const [from, to] = [offsets[id], offsets[id + 1]];
  if (to === from) return null;
  const part = { ids: ids.subarray(from, to), ends: ends.subarray(from, to) };
  return { chunkTokens: 16, ...part, namedTokens: ends[to - 1] };
}

/** @param ended told of each request that ends, with the tick of its last token; `null` of one that was refused */
function outcomeOf(
  { inputTokens: { length } }: TrialRequests,
  ended: (id: number, tick: number | null) => void = () => {},
) {
  const none = () => new Float64Array(length).fill(Number.NaN);
  const tokens = { firstTokens: none(), lastTokens: none(), outputs: new Int32Array(length) };
  const columns = { arrivals: none(), ...tokens, refused: new Uint8Array(length) };
  return {
    columns,
    firstTokens({ ids, firstTokens, count }: FirstTokenLog): void {
      const { firstTokens: own } = columns;
      for (let i = 0; i < count; i++) if (Number.isNaN(own[ids[i]])) own[ids[i]] = firstTokens[i];
    },
    completions({ ids, lastTokens, outputs, count }: CompletionLog): void {
      for (let i = 0; i < count; i++) {
        columns.lastTokens[ids[i]] = lastTokens[i];
        columns.outputs[ids[i]] = outputs[i];
        ended(ids[i], lastTokens[i]);
      }
    },
    refused(id: number): void {
      columns.refused[id] = 1;
      ended(id, null);
    },
    result(fleet: Fleet, kinds: number, faults: readonly PolicyFault[]): TrialResult {
      const replicaSeconds = Array.from({ length: kinds }, (_, pool) => {
        const { starting, ready, draining } = fleet.replicaSeconds(pool);
        return starting + ready + draining;
      });
      return { ...columns, replicaSeconds, faults };
    },
  };
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
