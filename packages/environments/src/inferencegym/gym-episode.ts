import type { GymTask, RewardWeights } from './gym-tasks.ts';
import { GymWorkload, TPOT_JITTER, TTFT_JITTER } from './gym-workload.ts';
import {
  EPISODE_STEPS,
  GYM_DEFAULT_ACTION,
  type GymAction,
  type GymObservation,
  KNOBS,
  type Phase,
} from './schema.ts';
import { Service, type ServiceTimes } from './service.ts';
import { RecentLatencies, ServedRequests, WaitingRequests } from './waiting-requests.ts';

/** Measurements of a step (`MetricsSnapshot` of InferenceGym); values before the first. */
function noMetrics() {
  return {
    ttft_p50_ms: 0,
    ttft_p99_ms: 0,
    tpot_ms: 0,
    tokens_per_sec: 0,
    gpu_memory_gb: 0,
    /** US cents. */
    cost_per_1k: 0,
    spec_accept_rate: 0,
    eviction_events: 0,
    slo_violations: 0,
  };
}

/** Sums over the episode, which its grade is made of; values before the first step. */
function noTotals() {
  return {
    reward: 0,
    arrived: 0,
    /** Turned away by a full queue. */
    rejected: 0,
    /** Lost with a server that ran out of memory. */
    failed: 0,
    served: 0,
    outputTokens: 0,
    /** Sum over the steps of the median time to first token, each at most 5,000 ms. */
    ttftMs: 0,
    /** Sum over the steps of the violated share. */
    violationRate: 0,
    peakMemoryGb: 0,
    /** US cents. */
    cost: 0,
    /** Steps without full service: out of memory, or starting. */
    outageSteps: 0,
    oomEvents: 0,
    batchChange: noChange(),
    kvChange: noChange(),
  };
}
export type GymTotals = ReturnType<typeof noTotals>;

/** Moments of the differences between neighbouring actions. */
const noChange = () => ({ count: 0, sum: 0, squares: 0 });
export type ChangeMoments = ReturnType<typeof noChange>;

function noteChange(moments: ChangeMoments, change: number): void {
  moments.count++;
  moments.sum += change;
  moments.squares += change * change;
}

/** Cost of 1,000 tokens that is fully charged, US cents: what hosts ask for the tokens of a model of 8 billion weights. */
const REFERENCE_COST_PER_1K = 0.005;
/** Beyond twice the objective or the reference it makes no difference how far. */
const MOST_EXCESS = 2;
/** An engine that runs out of memory fails its whole batch: its violations weigh this much more. */
const OOM_VIOLATION_WEIGHT = 5;

/** Terms of the reward of a step, before the weights; values before the first step. */
function noTerms() {
  return {
    /** T: tokens a second over the best that a fixed configuration reaches in the task. */
    throughput: 0,
    /** L: median time to first token over the objective, at most 2. */
    latency: 0,
    /** V: violated share of the judged requests, 0 to 1; times 5 out of memory. */
    violations: 0,
    /** C: cost of 1,000 tokens over the reference, at most 2. */
    cost: 0,
  };
}

/** `alpha T - beta L - gamma V - delta C`, held within [-1, 1]. */
function gymReward(
  { throughput, latency, violations, cost }: ReturnType<typeof noTerms>,
  weights: RewardWeights,
): number {
  const sum =
    weights.alpha * throughput - weights.beta * latency - weights.gamma * violations - weights.delta * cost;
  return Math.max(-1, Math.min(1, sum));
}

/** Ends of the observation's ranges. */
const MOST_TTFT_MS = 5000;
const MOST_TPOT_MS = 500;
const MOST_MEMORY_GB = 80;
const MOST_ARRIVAL_RATE = 200;
const LONGEST_PROMPT = 8192;
const SHORTEST_PROMPT = 32;
/** Weight of a step in the average of the arrival rate, which spans 10 steps. */
const ARRIVAL_WEIGHT = 2 / 11;
/** Server that an episode is played on: a `GymWorld`. */
export interface EpisodeWorld {
  readonly times: ServiceTimes;
  /** Most tokens a second that a fixed configuration reaches in the task. */
  calibration(task: GymTask): { readonly bestTokensPerSecond: number };
}

/**
 * One episode of `inferencegym`, without the wire: the traffic of (task, seed) on a server that a trace table describes,
 * second by second. Takes valid actions only. The same table, task, seed and actions give the same bits.
 */
export class GymEpisode {
  readonly task: GymTask;
  readonly seed: number;
  readonly world: EpisodeWorld;
  readonly weights: RewardWeights;
  readonly workload: GymWorkload;
  /** Steps played. */
  timestep = 0;
  readonly metrics = noMetrics();
  readonly terms = noTerms();
  readonly totals = noTotals();
  /** True when the memory ran out in the last step. */
  outOfMemory = false;
  /** Requests that the last step turned away because the queue was full. */
  rejected = 0;

  /** The configuration in force: that of the last action as far as its knobs are active. */
  action: GymAction = GYM_DEFAULT_ACTION;

  readonly #bestTokensPerSecond: number;
  /** More the server may not take, GB. */
  readonly #memoryLimitGb: number;
  readonly #isActive: readonly boolean[];
  readonly #service: Service;
  readonly #waiting = new WaitingRequests();
  readonly #recent = new RecentLatencies();
  readonly #servedNow = new ServedRequests();
  /** Seconds for which the server is still starting. */
  #outage = 0;
  /** Seconds for which it computes again what a smaller pool has dropped. */
  #recomputing = 0;
  /** Requests that ran at the end of the last step. */
  #running = 0;
  #meanPrompt: number;
  #lastPrompt: number;
  #arrivalRate: number;
  readonly #classShares: [number, number, number];
  #occupancy = 0;
  #violationRate = 0;

  constructor(task: GymTask, seed: number, world: EpisodeWorld, weights: RewardWeights = task.reward) {
    this.task = task;
    this.seed = seed;
    this.world = world;
    this.#memoryLimitGb = world.times.table.conditions.memoryLimitGb;
    this.#bestTokensPerSecond = world.calibration(task).bestTokensPerSecond;
    this.weights = weights;
    this.workload = new GymWorkload(task, seed);
    this.#service = new Service(world.times, task.outputTokens, task.acceptanceBase);
    this.#isActive = KNOBS.map((knob) => task.activeKnobs.includes(knob));
    this.workload.turnTo(0);
    this.#meanPrompt = this.#lastPrompt = this.workload.promptTokens(0);
    this.#arrivalRate = task.arrivalRate;
    this.#classShares = [...task.classShares];
    this.#service.configure(this.action, this.#meanPrompt);
    this.metrics.gpu_memory_gb = Math.min(this.#memoryLimitGb, this.#service.memoryGb());
  }

  get done(): boolean {
    return this.timestep >= EPISODE_STEPS;
  }
  get queueDepth(): number {
    return this.#waiting.count;
  }
  /** Of the last step, or of the first one that is to come. */
  get phase(): Phase {
    return this.workload.phase(Math.max(0, this.timestep - 1));
  }

  /** Plays one step. Answers its reward. Only before the end. */
  step(action: GymAction): number {
    const { metrics, workload, task, totals } = this;
    const service = this.#service;
    const waiting = this.#waiting;
    const servedNow = this.#servedNow;
    const step = this.timestep++;
    const end = step + 1;
    this.#apply(action, step);
    this.#arrive(step);
    service.configure(this.action, this.#meanPrompt);

    const memoryGb = service.memoryGb();
    const centsPerSecond = service.centsPerSecond();
    const capacity = service.capacity();
    this.outOfMemory = this.#outage <= 0 && memoryGb > this.#memoryLimitGb;
    let failed = 0;
    if (this.outOfMemory) {
      // The batch that was to run is lost with the server.
      failed = Math.min(waiting.count, this.action.batch_size);
      waiting.drop(failed);
      this.#outage = this.world.times.table.conditions.reloadSeconds + 1;
      this.#running = 0;
      totals.oomEvents++;
    }
    const evicted = this.#evict();
    const start = step + Math.min(1, this.#outage + this.#recomputing);
    if (this.#outage > 0) totals.outageSteps++;
    this.#outage = Math.max(0, this.#outage - 1);
    this.#recomputing = Math.max(0, this.#recomputing - 1);
    const served = servedNow.admit(waiting, start, end, capacity);

    const batch = service.batchFor(served);
    service.runAt(batch);
    const ttftJitter = workload.jitter(step, TTFT_JITTER);
    const ttftP50 = service.ttftP50() * ttftJitter;
    const ttftP99 = Math.max(ttftP50, service.ttftP99() * ttftJitter);
    if (served > 0) metrics.tpot_ms = service.tpot() * workload.jitter(step, TPOT_JITTER);
    const late = servedNow.late(task.sloMs, ttftP50, ttftP99, workload, this.#recent);
    const overdue = waiting.overdue(end, task.sloMs);
    const violated = late + overdue + failed + this.rejected;
    const judged = served + overdue + failed + this.rejected;
    this.#violationRate = judged === 0 ? 0 : violated / judged;
    this.#measureTtft(served, failed, end, ttftP50, ttftP99);

    const tokens = served * task.outputTokens;
    metrics.tokens_per_sec = tokens;
    metrics.gpu_memory_gb = Math.min(this.#memoryLimitGb, memoryGb);
    metrics.cost_per_1k = tokens > 0 ? (centsPerSecond / tokens) * 1000 : centsPerSecond;
    metrics.spec_accept_rate = service.acceptance;
    metrics.slo_violations = violated;
    const held = service.sequencesHeld;
    this.#occupancy = Math.min(1, batch / held);
    this.#running = waiting.count > 0 ? Math.min(this.action.batch_size, held) : batch;
    // When more may run than the pool holds, those beyond it are admitted, preempted and computed again.
    const tried = waiting.count > 0 ? this.action.batch_size : batch;
    metrics.eviction_events = evicted + (tried > held ? Math.round(served * (1 - held / tried)) : 0);

    totals.served += served;
    totals.failed += failed;
    totals.outputTokens += tokens;
    totals.ttftMs += Math.min(MOST_TTFT_MS, metrics.ttft_p50_ms);
    totals.violationRate += this.#violationRate;
    if (metrics.gpu_memory_gb > totals.peakMemoryGb) totals.peakMemoryGb = metrics.gpu_memory_gb;
    totals.cost += centsPerSecond;
    return this.#settle(tokens);
  }

  /** The server as the agent sees it. */
  observation(): GymObservation {
    const { metrics, totals } = this;
    return {
      queue_depth: this.#waiting.count,
      mean_prompt_len: Math.max(SHORTEST_PROMPT, Math.min(LONGEST_PROMPT, this.#lastPrompt)),
      arrival_rate: Math.min(MOST_ARRIVAL_RATE, this.#arrivalRate),
      kv_cache_occupancy: this.#occupancy,
      ttft_p50: Math.min(MOST_TTFT_MS, this.#recent.median()),
      tpot_p50: Math.min(MOST_TPOT_MS, metrics.tpot_ms),
      slo_violation_rate: this.#violationRate,
      gpu_memory_used_gb: Math.min(MOST_MEMORY_GB, metrics.gpu_memory_gb),
      spec_accept_rate: metrics.spec_accept_rate,
      priority_distribution: [this.#classShares[0], this.#classShares[1], this.#classShares[2]],
      timestep: this.timestep,
      cost_so_far: totals.cost,
    };
  }

  #apply(action: GymAction, step: number): void {
    const [kv, spec, batch, disagg, quant] = this.#isActive;
    const before = this.action;
    // One literal with all knobs: episodes are played by the million.
    const applied: GymAction = {
      kv_budget: kv ? action.kv_budget : GYM_DEFAULT_ACTION.kv_budget,
      spec_length: spec ? action.spec_length : GYM_DEFAULT_ACTION.spec_length,
      batch_size: batch ? action.batch_size : GYM_DEFAULT_ACTION.batch_size,
      prefill_disagg: disagg ? action.prefill_disagg : GYM_DEFAULT_ACTION.prefill_disagg,
      quant_tier: quant ? action.quant_tier : GYM_DEFAULT_ACTION.quant_tier,
    };
    if (step > 0) {
      noteChange(this.totals.batchChange, applied.batch_size - before.batch_size);
      noteChange(this.totals.kvChange, applied.kv_budget - before.kv_budget);
    }
    // Other weights or another division of the GPUs need another server.
    if (applied.prefill_disagg !== before.prefill_disagg || applied.quant_tier !== before.quant_tier) {
      this.#outage = Math.max(this.#outage, this.world.times.table.conditions.reloadSeconds);
    }
    this.action = applied;
  }

  #arrive(step: number): void {
    const { workload } = this;
    const waiting = this.#waiting;
    const classShares = this.#classShares;
    const arrivals = workload.arrivals(step);
    workload.turnTo(step);
    const promptsBefore = waiting.promptTokens;
    const interactiveBefore = waiting.countOf(0);
    const batchBefore = waiting.countOf(1);
    const accepted = waiting.join(step, arrivals, workload);
    this.rejected = arrivals - accepted;
    this.totals.arrived += arrivals;
    this.totals.rejected += this.rejected;
    this.#arrivalRate += ARRIVAL_WEIGHT * (arrivals - this.#arrivalRate);
    if (accepted > 0) {
      const interactive = waiting.countOf(0) - interactiveBefore;
      const batch = waiting.countOf(1) - batchBefore;
      this.#lastPrompt = (waiting.promptTokens - promptsBefore) / accepted;
      classShares[0] = interactive / accepted;
      classShares[1] = batch / accepted;
      classShares[2] = (accepted - interactive - batch) / accepted;
    }
    if (waiting.count > 0) this.#meanPrompt = waiting.promptTokens / waiting.count;
  }

  /** A pool that has become smaller than what runs in it preempts, and what it drops is computed again. */
  #evict(): number {
    const { sequencesHeld, recomputeSeconds } = this.#service;
    const evicted = Math.ceil(this.#running - sequencesHeld);
    if (evicted <= 0) return 0;
    this.#recomputing += evicted * recomputeSeconds;
    return evicted;
  }

  #measureTtft(served: number, failed: number, end: number, ttftP50: number, ttftP99: number): void {
    const { metrics } = this;
    const waiting = this.#waiting;
    if (served > 0) {
      metrics.ttft_p50_ms = this.#servedNow.medianWait * 1000 + ttftP50;
      metrics.ttft_p99_ms = this.#servedNow.longestWait * 1000 + ttftP99;
    } else if (waiting.count > 0 || failed > 0) {
      // Nobody was served: those who wait have waited for so long already, those who failed wait for ever.
      const oldest = failed > 0 ? MOST_TTFT_MS : (end - waiting.arrivalOf(0)) * 1000;
      metrics.ttft_p50_ms = failed > 0 ? MOST_TTFT_MS : (end - waiting.arrivalOf(waiting.count >> 1)) * 1000;
      metrics.ttft_p99_ms = oldest;
      this.#recent.push(oldest);
    }
  }

  #settle(tokens: number): number {
    const { terms, metrics, task, totals } = this;
    terms.throughput = tokens / this.#bestTokensPerSecond;
    terms.latency = Math.min(MOST_EXCESS, metrics.ttft_p50_ms / task.sloMs[0]);
    terms.violations = this.#violationRate * (this.outOfMemory ? OOM_VIOLATION_WEIGHT : 1);
    terms.cost = Math.min(MOST_EXCESS, metrics.cost_per_1k / REFERENCE_COST_PER_1K);
    const reward = gymReward(terms, this.weights);
    totals.reward += reward;
    return reward;
  }
}
