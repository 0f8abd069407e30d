import { findProfile } from '@servegym/profiles';
import { type EngineProfile, kvBlocksGiB, kvPoolBlocks, weightVariant } from '@servegym/simulator';
import type { EpisodeRequests } from '../episode-requests.ts';
import { QUANTIZATION_TIERS, type QuantizationTier } from '../schema.ts';
import { type ServeTask, unmaskedValues } from '../serve-task.ts';

const GPUS = 2;
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
  const profile = findProfile(task.profile);
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
