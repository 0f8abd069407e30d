import type { ResetOptions } from '@servegym/openenv/definition';
import {
  Cluster,
  type EngineProfile,
  msFromTicks,
  NOT_YET,
  type ServingConfig,
  TICKS_PER_S,
  usedGiB,
  weightVariant,
} from '@servegym/simulator';
import { REQUEST_CLASSES } from '../tasks.ts';
import { tracePlayed } from '../traces.ts';
import { promptPrefix } from '../workload/fitted-workload.ts';
import { drawRequests, type EpisodeRequests } from './episode-requests.ts';
import type { ServeScenario } from './scenario.ts';
import type {
  ObservedFigure,
  ServeAction,
  ServeObservation,
  ServerDescription,
  ServeState,
} from './schema.ts';
import { type RewardWeights, SERVE_TASKS, type ServeTask, serverOf } from './serve-task.ts';
import { describeServer, GPUS, relativeFigures } from './server-description.ts';
import { ServerEstimate } from './server-estimate.ts';
import { WindowMetrics } from './window-metrics.ts';

const BYTES_PER_GIB = 2 ** 30;

interface ServeEpisodeOptions {
  /** The traffic of (task, seed), when the caller has it already. */
  readonly requests?: EpisodeRequests | undefined;
  /** Another server than the task's. */
  readonly profile?: EngineProfile;
}

/**
 * One episode of `llmserve`, without the wire: the traffic of (task, seed) on a cluster, window by window. Takes valid
 * actions only. The same task, seed and actions give the same bits.
 */
export class ServeEpisode {
  readonly task: ServeTask;
  readonly seed: number;
  readonly profile: EngineProfile;
  readonly requests: EpisodeRequests;
  readonly cluster: Cluster;
  /** The last window's measurements. */
  readonly metrics = new WindowMetrics();
  /** Windows played. */
  window = 0;
  /** Running totals. */
  totals = {
    requestsServed: 0,
    /** Requests that can never fit the KV pool. */
    requestsRejected: 0,
    /** Of requests that have finished or were refused. */
    sloViolations: 0,
    outputTokens: 0,
    preemptions: 0,
    cost: 0,
    reward: 0,
  };
  /** Parts of the last window's reward. */
  components: RewardComponents = { throughput: 0, slo: 0, memory: 0, cost: 0, quality: 0 };
  /** The configuration in force. */
  action: ServeAction;
  #server: ServerDescription | undefined;
  #estimate: ServerEstimate | undefined;
  /** Window that the estimate has seen last. */
  #estimated = -1;

  constructor(task: ServeTask, seed: number, options: ServeEpisodeOptions = {}) {
    this.task = task;
    this.seed = seed;
    this.profile = options.profile ?? serverOf(task);
    this.requests = options.requests ?? drawRequests(task, seed);
    this.action = task.defaultAction;
    this.cluster = new Cluster(servingConfig(task.defaultAction), {
      profile: this.profile,
      acceptance: task.acceptance,
      seed,
      prefixCaching: this.requests.prefixes !== undefined,
      // The anchors and the agents' benchmark were measured without look-ahead slots.
      drafter: 'ngram',
    });
  }

  get done(): boolean {
    return this.window >= this.task.windows;
  }

  /** Name of the phase of the last window, or of the first before it. */
  get phase(): string {
    return this.task.phases[this.requests.phases[Math.max(0, this.window - 1)]].name;
  }

  /** Plays one window. Answers its reward. Only before the end. */
  step(action: ServeAction): number {
    const { task, requests, cluster, metrics, window } = this;
    this.action = action;
    cluster.clearLogs();
    const phase = task.phases[requests.phases[window]];
    const acceptance = phase.acceptance ?? task.acceptance;
    cluster.configure(servingConfig(action), requests.tenantGiB[window], acceptance);
    for (let id = requests.windowStarts[window]; id < requests.windowStarts[window + 1]; id++) {
      cluster.submit({
        id,
        arrival: requests.arrivalTicks[id],
        input: requests.inputTokens[id],
        output: requests.outputTokens[id],
        priority: requests.classes[id],
        prefix: promptPrefix(requests, id),
      });
    }
    const end = (window + 1) * task.windowSeconds * TICKS_PER_S;
    cluster.runUntil(end);
    metrics.collect(cluster, requests, task, window, end);
    this.window++;
    return this.#settle(action, phase.qualityValue);
  }

  /** The server over the last window, as an agent sees it. */
  observation(): ServeObservation {
    const { metrics, cluster, task } = this;
    const interTokenLatency = metrics.interTokenLatency;
    let used = 0;
    let pool = 0;
    for (let gpu = 0; gpu < GPUS; gpu++) {
      const memory = cluster.memoryOf(gpu);
      used += usedGiB(memory);
      pool += memory.kvPool;
    }
    const seen = {
      queue_depth: cluster.waitingCount,
      active_requests: cluster.runningCount,
      kv_cache_occupancy: cluster.kvBlocksUsed / cluster.kvBlocksTotal,
      mean_prompt_length: metrics.arrived === 0 ? 0 : metrics.promptTokensArrived / metrics.arrived,
      p50_ttft_ms: metrics.ttft.percentile(50),
      p99_ttft_ms: metrics.ttft.percentile(99),
      p50_itl_ms: interTokenLatency.quantileMs(0.5),
      throughput_tps: metrics.outputTokens / task.windowSeconds,
      slo_compliance_rate: metrics.sloCompliance(),
      gpu_memory_used_gb: ((used / GPUS) * BYTES_PER_GIB) / 1e9,
      estimated_cost_per_1k: this.#costPer1k(metrics.outputTokens),
      request_arrival_rate: metrics.arrived / task.windowSeconds,
      spec_acceptance_rate: metrics.draftTokens === 0 ? 0 : metrics.acceptedTokens / metrics.draftTokens,
      eviction_events: metrics.preemptions,
      quality_value: task.phases[this.requests.phases[Math.max(0, this.window - 1)]].qualityValue,
    };
    const server = this.#describedServer(seen);
    const poolGb = ((pool / GPUS) * BYTES_PER_GIB) / 1e9;
    return {
      ...seen,
      ...{ step_index: this.window, task_id: task.id },
      relative: relativeFigures(seen, server, task, poolGb),
      server,
    };
  }

  /** That of the profile, or an estimate from the windows that were observed. */
  #describedServer(seen: Pick<ServeObservation, ObservedFigure>): ServerDescription {
    const { task, cluster, window } = this;
    this.#server ??= describeServer(task, this.profile);
    if (task.serverFrom === undefined) return this.#server;
    this.#estimate ??= new ServerEstimate(task);
    if (this.#estimated < window) {
      const kvTokens = (cluster.kvBlocksTotal / GPUS) * this.profile.memory.blockTokens;
      const itlMs = this.metrics.interTokenLatency.meanMs();
      this.#estimate.see(this.action, { seen, kvTokens, engines: GPUS, itlMs });
      this.#estimated = window;
    }
    return this.#estimate.description;
  }

  /**
   * Requests outside their objectives so far, each counted once: those that have finished or were refused, and those
   * that wait or run and whose first token is late already.
   */
  sloViolations(): number {
    const { cluster, task, totals, window, requests } = this;
    const now = window * task.windowSeconds * TICKS_PER_S;
    let violations = totals.sloViolations;
    const countLate = (id: number, arrival: number, firstToken: number) => {
      const { ttftMs } = task.objectives[REQUEST_CLASSES[requests.classes[id]]];
      const waited = (firstToken === NOT_YET ? now : firstToken) - arrival;
      if (msFromTicks(waited) > ttftMs) violations++;
    };
    for (const engine of cluster.engines) {
      engine.forEachWaiting(countLate);
      engine.forEachRunning(countLate);
    }
    return violations;
  }

  /** State that the rest of the episode depends on. */
  snapshot(): ServeEpisodeSnapshot {
    return {
      cluster: this.cluster.snapshot(),
      window: this.window,
      totals: { ...this.totals },
      components: this.components,
      action: this.action,
    };
  }

  /** Goes back to where `snapshot` was taken. `metrics` are those of the next window played. */
  restore(snapshot: ServeEpisodeSnapshot): void {
    this.cluster.restore(snapshot.cluster);
    this.window = snapshot.window;
    this.totals = { ...snapshot.totals };
    this.components = snapshot.components;
    this.action = snapshot.action;
  }

  #settle(action: ServeAction, qualityValue: number): number {
    const { task, metrics, totals, profile } = this;
    const emitted = metrics.outputTokens;
    let memoryShare = 0;
    for (let gpu = 0; gpu < GPUS; gpu++) {
      const { weights, draft, kvPool, limit } = this.cluster.memoryOf(gpu);
      memoryShare += (weights + draft + kvPool) / limit / GPUS;
    }
    this.components = rewardComponents(
      {
        servedShare: emitted === 0 ? 0 : emitted / (emitted + metrics.owedTokens),
        sloAttainment: metrics.sloCompliance((name) => task.objectives[name].weight),
        memoryShare,
        costShare: emitted === 0 ? 1 : Math.min(1, this.#costPer1k(emitted) / task.referenceCostPer1k),
        qualityLoss: 1 - weightVariant(profile, action.quantization_tier).quality,
        qualityValue,
      },
      task.reward,
    );
    const reward = totalReward(this.components);
    totals.requestsServed += metrics.completed;
    totals.requestsRejected += metrics.rejected;
    for (const { violations } of metrics.classes) totals.sloViolations += violations;
    totals.outputTokens += emitted;
    totals.preemptions += metrics.preemptions;
    totals.cost += this.#windowCost();
    totals.reward += reward;
    return reward;
  }

  /** USD of both GPUs for one window. */
  #windowCost(): number {
    const { usdPerHour, count } = this.profile.gpu;
    return (GPUS * count * usdPerHour * this.task.windowSeconds) / 3600;
  }

  /** USD for 1,000 output tokens; of a window that emits none, the cost of the window. */
  #costPer1k(outputTokens: number): number {
    return outputTokens === 0 ? this.#windowCost() : (this.#windowCost() / outputTokens) * 1000;
  }
}

/** The state of an episode, made by `snapshot` and taken by `restore`. */
export type ServeEpisodeSnapshot = Readonly<
  Pick<ServeEpisode, 'window' | 'totals' | 'components' | 'action'>
> & { readonly cluster: ReturnType<Cluster['snapshot']> };

/** An action in the engine's words. */
export function servingConfig(action: ServeAction): ServingConfig {
  return {
    maxNumSeqs: action.batch_cap,
    kvBudgetFraction: action.kv_budget_fraction,
    speculationDepth: action.speculation_depth,
    weights: action.quantization_tier,
    split: action.prefill_decode_split,
    schedulingPolicy: action.priority_routing ? 'priority' : 'fcfs',
  };
}

/** Figures that make a window's reward, each in [0, 1] unless said otherwise. */
interface WindowOutcome {
  /** Output tokens over output tokens plus those owed to the requests that wait; 0 when nothing is emitted. */
  readonly servedShare: number;
  /** Weighted share of the judged requests inside their objectives. */
  readonly sloAttainment: number;
  /** Share of the GPUs' memory that weights, draft and KV pool hold. */
  readonly memoryShare: number;
  /** Cost of 1,000 output tokens over the task's reference; at most 1, and 1 when nothing is emitted. */
  readonly costShare: number;
  /** 1 - the quality of the weights' tier. */
  readonly qualityLoss: number;
  /** Reward that a unit of quality is worth in this phase; any non-negative number. */
  readonly qualityValue: number;
}

/** The signed parts of a reward, which sum to it. */
export function rewardComponents(outcome: WindowOutcome, weights: RewardWeights) {
  return {
    throughput: weights.throughput * outcome.servedShare,
    slo: weights.slo * outcome.sloAttainment,
    memory: -weights.memory * outcome.memoryShare,
    cost: -weights.cost * outcome.costShare,
    quality: -outcome.qualityValue * outcome.qualityLoss,
  };
}

export type RewardComponents = Readonly<ReturnType<typeof rewardComponents>>;

/** The sum of the parts, held within [-1, 1]. */
export function totalReward(components: RewardComponents): number {
  const { throughput, slo, memory, cost, quality } = components;
  return Math.max(-1, Math.min(1, throughput + slo + memory + cost + quality));
}

type StatedEpisode = Pick<ServeEpisode, 'task' | 'seed' | 'window' | 'phase' | 'done'> & {
  readonly totals: Pick<ServeEpisode['totals'], 'requestsServed' | 'reward'>;
};

/** State of an episode, simulated or real, that was reset with these options; `null` before the first reset. */
export function episodeState(
  episode: StatedEpisode | null,
  reset: ResetOptions,
  sloViolations: number,
): ServeState {
  const {
    task = SERVE_TASKS.static_workload,
    seed = 0,
    totals,
    window = 0,
  }: Partial<StatedEpisode> = episode ?? {};
  const { traffic, shift, rate_scale, trace } = reset as ServeScenario;
  const requests = task.source?.requests;
  return {
    task_id: task.id,
    traffic: traffic ?? null,
    trace: requests?.kind === 'trace' ? tracePlayed(trace, requests.trace) : null,
    shift: shift ?? null,
    rate_scale: rate_scale ?? 1,
    profile: task.profile,
    seed,
    total_requests_served: totals?.requestsServed ?? 0,
    total_slo_violations: sloViolations,
    cumulative_reward: totals?.reward ?? 0,
    elapsed_simulated_time_s: window * task.windowSeconds,
    workload_phase: episode?.phase ?? 'none',
    done: episode?.done ?? false,
  };
}
