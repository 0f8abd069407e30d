import { findProfile } from '@servegym/profiles';
import { type EngineProfile, kvBlocksGiB, kvPoolBlocks, weightVariant } from '@servegym/simulator';
import { mean as meanOf, stratifiedBootstrap } from '@servegym/simulator/statistics';
import {
  FINGERPRINT_SEED,
  printPlay,
  recordedReturns,
  type ScoreAnchors,
  type WindowAnchors,
} from '../../grading.ts';
import { splitOfSeed } from '../../scenario.ts';
import { drawRequests, type EpisodeRequests } from '../episode-requests.ts';
import { QUANTIZATION_TIERS, type QuantizationTier, type ServeAction } from '../schema.ts';
import { ServeEpisode } from '../serve-episode.ts';
import { SERVE_TASKS, type ServeTask, serverOf, unmaskedValues } from '../serve-task.ts';
import { GPUS } from '../server-description.ts';
import recorded from './reference-returns.json' with { type: 'json' };

/** Recorded returns of a task. */
export interface TaskReference {
  readonly fingerprint: string;
  /** The configuration that earned most on the training traffic when it never changed. */
  readonly constant: ServeAction;
  /** The one that earned most when all traffic was of one phase, by name of the phase. */
  readonly phases: Readonly<Record<string, ServeAction>>;
  readonly seeds: Readonly<Record<string, SeedReturns>>;
}

/** Returns on the traffic of one seed. */
export interface SeedReturns {
  readonly default: number;
  readonly constant: number;
  /** Of the receding-horizon planner, which does not know the traffic to come; absent where it was not played. */
  readonly planner?: number;
  /** Of the planner that does. */
  readonly clairvoyant: number;
}

/**
 * Knobs of the first windows of the episode that is played for a fingerprint: what is costly to get right is in them. The
 * others, which bring the other phases, are played with the default.
 */
const PLAYED: readonly Partial<ServeAction>[] = [
  {},
  { batch_cap: 96, kv_budget_fraction: 0.3 },
  { speculation_depth: 3 },
  { speculation_depth: 6, priority_routing: true },
  { quantization_tier: 'INT8', speculation_depth: 2 },
  { quantization_tier: 'INT8', kv_budget_fraction: 0.1, batch_cap: 128 },
  { quantization_tier: 'INT8', prefill_decode_split: true },
  { quantization_tier: 'INT8', prefill_decode_split: true, kv_budget_fraction: 0.2 },
  { quantization_tier: 'INT4', speculation_depth: 1 },
  { quantization_tier: 'INT4', kv_budget_fraction: 1, priority_routing: true },
];

/** The recorded returns. */
export const serveReturns = recordedReturns<ServeTask, SeedReturns, TaskReference>({
  url: new URL('./reference-returns.json', import.meta.url),
  records: recorded,
  shipped: SERVE_TASKS,
  print(hash, task) {
    const { name: _, description: __, serverFrom: ____, ...rest } = task;
    const { fit: ___, ...profile } = findProfile(task.profile);
    hash.update(JSON.stringify([rest, profile]));
    printPlay(hash, new ServeEpisode(task, FINGERPRINT_SEED), PLAYED, task.windows);
  },
  tuned: ({ constant }) => constant,
  bound: (task, seed) => returnBound(task, drawRequests(task, seed)),
  boundedSeeds: 12,
  unrecorded: 0,
});

/** Configurations that are worth trying in a task, the best constant first; the default alone where nothing is recorded. */
export function referenceConfigurations(task: ServeTask): ServeAction[] {
  const reference = serveReturns.reference(task.id);
  if (reference === undefined) return [task.defaultAction];
  return [reference.constant, ...Object.values(reference.phases), task.defaultAction];
}

/** Configurations for traffic of which nothing is known: much and little at once, in each precision. */
const ALL_ROUND: readonly ServeAction[] = QUANTIZATION_TIERS.flatMap((tier) =>
  [
    { batch_cap: 512, kv_budget_fraction: 1 },
    { batch_cap: 64, kv_budget_fraction: 0.4 },
  ].map((capacity) => ({
    ...capacity,
    speculation_depth: 0,
    quantization_tier: tier,
    prefill_decode_split: false,
    priority_routing: true,
  })),
);

/** Returns that an episode is held against, all on the same traffic. */
export interface EpisodeAnchors extends WindowAnchors, ScoreAnchors {
  /** Of the receding-horizon planner; `null` where it was not played. */
  readonly planner: number | null;
}

/**
 * The recorded returns of (task, seed). Where there are none, the default and the best constant are played, and the
 * clairvoyant is taken to come as far from the better of them towards the bound as it does over the recorded seeds of the
 * task. Under a shift, where the best constant of the task may be a bad one, the best of several configurations stands in
 * for the better of the two. For a task of which nothing is recorded, the clairvoyant is taken to reach the bound.
 */
export function episodeAnchors(task: ServeTask, seed: number, requests: EpisodeRequests): EpisodeAnchors {
  const bound = returnBound(task, requests);
  const recorded = serveReturns.returns(task, seed);
  if (recorded !== undefined) return { planner: null, ...recorded, bound, estimated: false };
  const played = (action: ServeAction) => constantReturn(task, seed, requests, action);
  const standard = played(task.defaultAction);
  const reference = serveReturns.reference(task.id);
  const constant = reference === undefined ? null : played(reference.constant);
  let clairvoyant = bound;
  if (constant !== null) {
    const others = serveReturns.isRecorded(task) ? [] : [...referenceConfigurations(task), ...ALL_ROUND];
    const best = Math.max(standard, constant, ...others.map(played));
    clairvoyant = best + serveReturns.foresight(task.id) * (bound - best);
  }
  return { default: standard, constant, planner: null, clairvoyant, bound, estimated: true };
}

/** Return of an episode in which the configuration never changes. */
export function constantReturn(
  task: ServeTask,
  seed: number,
  requests: EpisodeRequests,
  action: ServeAction,
): number {
  const episode = new ServeEpisode(task, seed, { requests });
  while (!episode.done) episode.step(action);
  return episode.totals.reward;
}

/** A mean over seeds with its 95 % interval. */
function meanReturn(values: readonly number[]) {
  return { mean: meanOf(values), ci95: stratifiedBootstrap([values], meanOf) };
}

/**
 * Figures of a task over its recorded test seeds. `room_to_adapt` is (clairvoyant - constant) / (clairvoyant - default);
 * no policy can exceed `bound`, which is `certificate_gap` above the clairvoyant.
 */
export function summarizeReference(task: ServeTask, { seeds }: TaskReference) {
  const tested = Object.entries(seeds).filter(([seed]) => splitOfSeed(Number(seed)) === 'test');
  const returns = tested.map(([, each]) => each);
  const standard = meanReturn(returns.map((each) => each.default));
  const constant = meanReturn(returns.map((each) => each.constant));
  const clairvoyant = meanReturn(returns.map((each) => each.clairvoyant));
  const bound = meanOf(tested.map(([seed]) => returnBound(task, drawRequests(task, Number(seed)))));
  return {
    seeds: returns.length,
    default: standard,
    constant,
    planner: plannerSummary(returns),
    clairvoyant,
    room_to_adapt: (clairvoyant.mean - constant.mean) / (clairvoyant.mean - standard.mean),
    bound,
    certificate_gap: bound - clairvoyant.mean,
  };
}

/** The planner over the seeds that it has played; `null` when there are none. */
function plannerSummary(returns: readonly SeedReturns[]) {
  const planned = returns.filter((each): each is Required<SeedReturns> => each.planner !== undefined);
  if (planned.length === 0) return null;
  const mean = meanReturn(planned.map(({ planner }) => planner));
  const constant = meanOf(planned.map((each) => each.constant));
  const clairvoyant = meanOf(planned.map((each) => each.clairvoyant));
  return {
    ...mean,
    seeds: planned.length,
    gain_share: (mean.mean - constant) / (clairvoyant - constant),
  };
}

/** The least that `kv_budget_fraction` can be. */
const LEAST_POOL = 0.1;

/**
 * A return that no sequence of actions can exceed on this traffic, each part of the reward at its best on its own:
 *
 * - everything owed is served inside its objectives;
 * - in each window the tier is in force that is cheapest in quality and in memory, with the smallest pool, or the one
 *   that tenants leave after an out-of-memory; knobs that the task masks stay at the default;
 * - the output tokens that have arrived are emitted as evenly as their arrivals allow, which makes the sum of the cost
 *   parts least: they are convex in the tokens of a window, or bounded by a function that is.
 */
export function returnBound(task: ServeTask, requests: EpisodeRequests): number {
  const profile = serverOf(task);
  const { throughput, slo, memory, cost } = task.reward;
  let bound = task.windows * (throughput + slo);
  for (let window = 0; window < task.windows; window++) {
    const { qualityValue } = task.phases[requests.phases[window]];
    const tenant = requests.tenantGiB[window];
    bound -= Math.min(
      ...unmaskedValues(task, 'quantization_tier', QUANTIZATION_TIERS).map(
        (tier) =>
          memory * leastMemoryShare(task, profile, tier, tenant) +
          qualityValue * (1 - weightVariant(profile, tier).quality),
      ),
    );
  }
  const windowUsd = (GPUS * profile.gpu.count * profile.gpu.usdPerHour * task.windowSeconds) / 3600;
  const fullyCharged = (windowUsd / task.referenceCostPer1k) * 1000;
  for (const tokens of evenestEmission(task, requests)) {
    bound -= cost * leastCostShare(tokens, fullyCharged);
  }
  return bound;
}

/** Least share of a GPU's memory that weights, draft and pool can hold. */
function leastMemoryShare(
  task: ServeTask,
  profile: EngineProfile,
  tier: QuantizationTier,
  tenantGiB: number,
): number {
  const { memoryGiB } = profile.gpu;
  const { weightGiB } = weightVariant(profile, tier);
  const [pool] = unmaskedValues(task, 'kv_budget_fraction', [LEAST_POOL]) as [number];
  const shares = unmaskedValues(task, 'speculation_depth', [0, 1]).map((depth) => {
    const speculation = depth > 0;
    const draft = speculation ? (profile.speculation?.draftGiB ?? 0) : 0;
    const smallest = kvBlocksGiB(profile, Math.max(1, kvPoolBlocks(profile, tier, speculation, pool)));
    const free = memoryGiB - weightGiB - draft - profile.memory.overheadGiB - tenantGiB;
    return (weightGiB + draft + Math.max(0, Math.min(smallest, free))) / memoryGiB;
  });
  return Math.min(...shares);
}

/**
 * The largest convex function below the cost share min(1, `fullyCharged` / tokens).
 * @param fullyCharged tokens of a window below which its cost is fully charged
 */
function leastCostShare(tokens: number, fullyCharged: number): number {
  if (tokens <= 2 * fullyCharged) return 1 - tokens / (4 * fullyCharged);
  return fullyCharged / tokens;
}

/**
 * Output tokens of each window when none is emitted before its request has arrived and they are spread as evenly as
 * that allows: the slopes of the greatest convex function below the cumulative arrivals.
 */
function evenestEmission(task: ServeTask, requests: EpisodeRequests): number[] {
  const arrived = [0];
  for (let window = 0, sum = 0; window < task.windows; window++) {
    for (let id = requests.windowStarts[window]; id < requests.windowStarts[window + 1]; id++) {
      sum += requests.outputTokens[id];
    }
    arrived.push(sum);
  }
  const corners = [0];
  for (let at = 1; at <= task.windows; at++) {
    while (corners.length > 1) {
      const last = corners[corners.length - 1];
      const before = corners[corners.length - 2];
      const slope = (arrived[last] - arrived[before]) / (last - before);
      if (slope <= (arrived[at] - arrived[last]) / (at - last)) break;
      corners.pop();
    }
    corners.push(at);
  }
  const tokens: number[] = [];
  for (let corner = 1; corner < corners.length; corner++) {
    const from = corners[corner - 1];
    const to = corners[corner];
    for (let window = from; window < to; window++) tokens.push((arrived[to] - arrived[from]) / (to - from));
  }
  return tokens;
}
