import { type EpisodeRequests, type ServeAction, ServeEpisode, type ServeTask } from '@servegym/environments';

/** Windows before this share of the episode are not looked at: a configuration that differs from the default settles in. */
const SETTLED = 0.2;

/** What an episode came to. Latencies in ms. */
export interface PlayedTask {
  readonly return: number;
  /** Means over the windows after the first fifth. */
  readonly queueDepth: number;
  readonly activeRequests: number;
  readonly p99TtftMs: number;
  readonly p50ItlMs: number;
  readonly kvOccupancy: number;
  readonly throughputTps: number;
  readonly sloCompliance: number;
  readonly gpuMemoryGb: number;
  readonly costPer1k: number;
  readonly interactiveTtftMs: number;
  readonly preemptions: number;
  readonly outOfMemory: number;
}

/** Plays an episode to its end and looks at every window. */
export function playTask(
  task: ServeTask,
  seed: number,
  actionOf: (window: number) => ServeAction,
  requests?: EpisodeRequests,
): PlayedTask {
  const episode = new ServeEpisode(task, seed, requests && { requests });
  const sums = {
    ...{ queueDepth: 0, activeRequests: 0, p99TtftMs: 0, p50ItlMs: 0, kvOccupancy: 0, throughputTps: 0 },
    ...{ sloCompliance: 0, gpuMemoryGb: 0, costPer1k: 0, interactiveTtftMs: 0 },
  };
  const first = Math.floor(SETTLED * task.windows);
  let outOfMemory = 0;
  while (!episode.done) {
    episode.step(actionOf(episode.window));
    for (const { kind } of episode.cluster.events) if (kind === 'oom') outOfMemory++;
    if (episode.window <= first) continue;
    const seen = episode.observation();
    sums.queueDepth += seen.queue_depth;
    sums.activeRequests += seen.active_requests;
    sums.p99TtftMs += seen.p99_ttft_ms;
    sums.p50ItlMs += seen.p50_itl_ms;
    sums.kvOccupancy += seen.kv_cache_occupancy;
    sums.throughputTps += seen.throughput_tps;
    sums.sloCompliance += seen.slo_compliance_rate;
    sums.gpuMemoryGb += seen.gpu_memory_used_gb;
    sums.costPer1k += seen.estimated_cost_per_1k;
    sums.interactiveTtftMs += episode.metrics.classes[0].ttft.percentile(99);
  }
  const means = Object.fromEntries(
    Object.entries(sums).map(([name, sum]) => [name, sum / (task.windows - first)]),
  ) as typeof sums;
  return {
    ...means,
    return: episode.totals.reward,
    preemptions: episode.totals.preemptions,
    outOfMemory,
  };
}

/** One figure of the episodes of several seeds, averaged. */
export function meanOver(
  seeds: readonly number[],
  play: (seed: number) => PlayedTask,
  figure: keyof PlayedTask,
): number {
  return seeds.reduce((sum, seed) => sum + play(seed)[figure], 0) / seeds.length;
}
