import { findProfile } from '@servegym/profiles';
import {
  type EngineProfile,
  Fleet,
  type FleetSettings,
  kvPoolBlocks,
  kvTokens,
  TICKS_PER_S,
  weightVariant,
} from '@servegym/simulator';
import { REQUEST_CLASSES } from '../tasks.ts';
import { drawFleetRequests, startHour } from './draw-requests.ts';
import { type FleetRequests, NO_REQUEST } from './fleet-requests.ts';
import type { FleetPoolTask, FleetTask } from './fleet-task.ts';
import {
  ADMIT_ALL_SECONDS,
  type FleetAction,
  type FleetObservation,
  type FleetServer,
  type ReplicaDescription,
} from './schema.ts';
import { prefixHitRate, WindowLedger } from './window-ledger.ts';

type FleetParameters = ConstructorParameters<typeof Fleet>;
/** What goes wrong in an episode, what decides beside its actions, and who else is told of what happens. */
type Watched = Pick<FleetParameters[1], 'faults' | 'policy' | 'standard'> & {
  readonly listener?: FleetParameters[2];
};

/** The last part of a window that `arrivals_last_seconds` counts, s. */
const LAST_SECONDS = 5;
/** Time for which the next turn of a session is waited for, s: nobody says that a session has ended. A choice. */
const SESSION_SECONDS = 180;

/** Running totals of an episode. */
export function noFleetTotals() {
  return {
    requests: 0,
    completed: 0,
    attained: 0,
    refused: 0,
    /** Price of the tokens inside their objectives. */
    revenueUsd: 0,
    /** Bill of the GPUs. */
    gpuUsd: 0,
    gpuHours: 0,
    replicaHours: 0,
    reward: 0,
  };
}

/**
 * One episode of `fleet`, without the wire: the requests of (task, seed) on a fleet, window by window. Takes valid
 * actions only. The same task, seed and actions give the same bits.
 */
export class FleetEpisode {
  readonly task: FleetTask;
  readonly seed: number;
  /** Profile of a replica of each kind. */
  readonly profiles: readonly EngineProfile[];
  readonly requests: FleetRequests;
  readonly fleet: Fleet;
  /** The last window's figures. */
  readonly ledger: WindowLedger;
  /** Windows played. */
  window = 0;
  totals = noFleetTotals();
  /** The settings in force. */
  action: FleetAction;
  /** Bill of the last window, USD. */
  billUsd = 0;
  /**
   * Tick at which each request arrived at the gateway. Written when it is submitted, before anything reads it: no part of a
   * snapshot.
   */
  readonly arrivalTicks: Float64Array;
  readonly #startHour: number;
  readonly #server: FleetServer;
  #inFlight = [0, 0, 0];
  #nextStart = 0;
  #lateArrivals = 0;
  /** Seconds of each kind of replica that were billed. */
  #billedSeconds: number[];
  /** Later turns that arrive after the window. */
  #dueTurns: number[] = [];
  /** Turns that were answered, and when: those that no other has followed so far, at the end of a window. */
  #answeredTurns: (readonly [id: number, tick: number])[] = [];

  constructor(
    task: FleetTask,
    seed: number,
    requests = drawFleetRequests(task, seed),
    watched: Watched = {},
  ) {
    const { listener, ...options } = watched;
    this.task = task;
    this.seed = seed;
    this.requests = requests;
    const pools = fleetPools(task);
    this.profiles = pools.map(({ profile }) => profile);
    this.action = task.defaultAction;
    this.arrivalTicks = new Float64Array(requests.inputTokens.length);
    this.#startHour = startHour(task, seed);
    this.#billedSeconds = pools.map(() => 0);
    this.#server = describeServer(task, this.profiles);
    this.ledger = new WindowLedger(task, requests, this.arrivalTicks);
    this.fleet = new Fleet(
      fleetSettings(task, task.defaultAction),
      {
        pools,
        maxReplicas: task.maxReplicas,
        metricsIntervalMs: task.metricsIntervalMs,
        failuresPerHour: task.failuresPerHour,
        seed,
        ...options,
      },
      {
        firstTokens: (log, replica) => {
          this.ledger.firstTokens(log);
          listener?.firstTokens(log, replica);
        },
        completions: (log, replica) => {
          this.ledger.completions(log);
          listener?.completions(log, replica);
          for (let i = 0; i < log.count; i++) this.#answered(log.ids[i], log.lastTokens[i]);
        },
        refused: (id, tick, reason) => {
          const kind = requests.classes[id];
          this.#inFlight[kind]--;
          this.ledger.classes[kind].refused++;
          listener?.refused(id, tick, reason);
        },
      },
    );
  }

  get done(): boolean {
    return this.window >= this.task.windows;
  }

  /** Plays one window. Answers its reward. Only before the end. */
  step(action: FleetAction): number {
    const { task, fleet, ledger, requests, totals } = this;
    const { windowSeconds } = task;
    this.action = action;
    fleet.configure(fleetSettings(task, action));
    fleet.clearLogs();
    ledger.clear();
    this.#lateArrivals = 0;
    const end = (this.window + 1) * windowSeconds * TICKS_PER_S;
    const { starts, startTicks } = requests;
    for (; this.#nextStart < starts.length && startTicks[this.#nextStart] < end; this.#nextStart++) {
      this.#arrive(starts[this.#nextStart], startTicks[this.#nextStart]);
    }
    const due = this.#dueTurns;
    this.#dueTurns = [];
    for (const id of due) this.#count(id, end);
    fleet.runUntil(end);
    this.window++;
    const { nextTurn } = requests;
    this.#answeredTurns = this.#answeredTurns.filter(
      ([id, tick]) =>
        tick > end - SESSION_SECONDS * TICKS_PER_S &&
        (nextTurn[id] === NO_REQUEST || this.arrivalTicks[nextTurn[id]] > end),
    );

    this.billUsd = 0;
    const pools = poolsOf(task);
    for (const [pool, { gpu }] of this.profiles.entries()) {
      const { starting, ready, draining } = fleet.replicaSeconds(pool);
      const seconds = starting + ready + draining;
      const hours = (seconds - this.#billedSeconds[pool]) / 3600;
      this.#billedSeconds[pool] = seconds;
      totals.replicaHours += hours;
      totals.gpuHours += hours * gpu.count;
      this.billUsd += hours * gpu.count * gpu.usdPerHour * (pools[pool]!.spot?.priceShare ?? 1);
    }
    const reward = (ledger.revenueUsd - this.billUsd) / task.referenceUsd;
    for (const name of ['completed', 'attained', 'refused'] as const) totals[name] += ledger.total(name);
    totals.revenueUsd += ledger.revenueUsd;
    totals.gpuUsd += this.billUsd;
    totals.reward += reward;
    return reward;
  }

  /** Requests of each class that wait or run. */
  get inFlight(): readonly number[] {
    return this.#inFlight;
  }

  /** The fleet over the last window, as an agent sees it. */
  observation(): FleetObservation {
    const { fleet, ledger, task, window } = this;
    const { windowSeconds } = task;
    const rate = (amount: number) => (window === 0 ? 0 : amount / windowSeconds);
    const counters = fleet.counters();
    const completed = ledger.total('completed');
    const itl = fleet.interTokenLatency();
    const ready = fleet.replicas.filter(({ state }) => state === 'ready');
    let running = 0;
    let waiting = fleet.heldCount;
    for (const { engine } of fleet.replicas) {
      running += engine.runningCount;
      waiting += engine.waitingCount + engine.futureCount;
    }
    const kvUses = ready.map(({ engine }) => engine.kvBlocksUsed / engine.kvBlocksTotal);
    const [interactive, batch, bestEffort] = ledger.classes.map((each, kind) => ({
      arrivals_per_second: rate(each.arrived),
      slo_attainment:
        each.completed + each.refused === 0 ? 1 : each.attained / (each.completed + each.refused),
      time_to_first_token_seconds: each.ttft.quantileMs(0.99) / 1000,
      num_requests_in_flight: this.#inFlight[kind],
      refused_per_second: rate(each.refused),
    }));
    return {
      num_requests_running: running,
      num_requests_waiting: waiting,
      kv_cache_usage_perc: kvUses.length === 0 ? 0 : kvUses.reduce((a, b) => a + b, 0) / kvUses.length,
      kv_cache_usage_most: Math.max(0, ...kvUses),
      session_kv_tokens: this.#answeredTurns.reduce(
        (sum, [id]) => sum + this.requests.inputTokens[id] + this.requests.outputTokens[id],
        0,
      ),
      prefix_cache_hit_rate: prefixHitRate(counters),
      prompt_tokens_per_second: rate(counters.prefillTokens),
      generation_tokens_per_second: rate(counters.outputTokens),
      arrived_prompt_tokens_per_second: rate(ledger.arrivedPromptTokens),
      request_generation_tokens_mean: completed === 0 ? 0 : ledger.answeredTokens / completed,
      request_success_per_second: rate(completed),
      num_preemptions: counters.preemptions,
      time_to_first_token_seconds_p50: ledger.ttft.quantileMs(0.5) / 1000,
      time_to_first_token_seconds_p99: ledger.ttft.quantileMs(0.99) / 1000,
      inter_token_latency_seconds_p50: itl.quantileMs(0.5) / 1000,
      inter_token_latency_seconds_p99: itl.quantileMs(0.99) / 1000,
      queue_seconds: Math.min(ADMIT_ALL_SECONDS, fleet.queueSeconds),
      arrivals_last_seconds: this.#lateArrivals / LAST_SECONDS,
      replicas_ready: ready.length,
      replicas_starting: fleet.replicas.filter(({ state }) => state === 'starting').length,
      replicas_draining: fleet.replicas.filter(({ state }) => state === 'draining').length,
      second_replicas_ready: ready.filter(({ pool }) => pool === 1).length,
      second_replicas_starting: fleet.replicas.filter(({ state, pool }) => state === 'starting' && pool === 1)
        .length,
      replicas_prefill: ready.filter(({ engine }) => engine.role === 'prefill').length,
      usd_per_hour: rate(this.billUsd) * 3600,
      revenue_usd_per_hour: rate(ledger.revenueUsd) * 3600,
      hour_of_day: (this.#startHour + (window * windowSeconds) / 3600) % 24,
      interactive,
      batch,
      best_effort: bestEffort,
      server: this.#server,
      step_index: window,
      task_id: task.id,
    };
  }

  /** State that the rest of the episode depends on. */
  snapshot() {
    return {
      // Named, as declarations can name none of the types in it.
      fleet: this.fleet.snapshot() as ReturnType<Fleet['snapshot']>,
      window: this.window,
      totals: { ...this.totals },
      action: this.action,
      inFlight: this.#inFlight.slice(),
      nextStart: this.#nextStart,
      billedSeconds: this.#billedSeconds.slice(),
      dueTurns: this.#dueTurns.slice(),
      answeredTurns: this.#answeredTurns.slice(),
    };
  }

  /** Goes back to where `snapshot` was taken. The ledger is that of the next window played. */
  restore(snapshot: ReturnType<FleetEpisode['snapshot']>): void {
    this.fleet.restore(snapshot.fleet);
    this.window = snapshot.window;
    this.totals = { ...snapshot.totals };
    this.action = snapshot.action;
    this.#inFlight = snapshot.inFlight.slice();
    this.#nextStart = snapshot.nextStart;
    this.#billedSeconds = snapshot.billedSeconds.slice();
    this.#dueTurns = snapshot.dueTurns.slice();
    this.#answeredTurns = snapshot.answeredTurns.slice();
  }

  #arrive(id: number, arrival: number): void {
    const { requests, fleet, task, window } = this;
    const { inputTokens, outputTokens, classes } = requests;
    const tick = Math.max(arrival, fleet.now);
    this.arrivalTicks[id] = tick;
    fleet.submit({
      id,
      arrival: tick,
      input: inputTokens[id],
      output: outputTokens[id],
      priority: classes[id],
      prefix: requests.texts?.prefixOf(id, inputTokens[id], outputTokens[id]) ?? null,
    });
    this.#count(id, (window + 1) * task.windowSeconds * TICKS_PER_S);
  }

  /** Counts an arrival in its window, of which `end` is the last tick. */
  #count(id: number, end: number): void {
    const tick = this.arrivalTicks[id];
    if (tick >= end) {
      this.#dueTurns.push(id);
      return;
    }
    const kind = this.requests.classes[id];
    this.ledger.classes[kind].arrived++;
    this.ledger.arrivedPromptTokens += this.requests.inputTokens[id];
    this.totals.requests++;
    this.#inFlight[kind]++;
    if (tick >= end - LAST_SECONDS * TICKS_PER_S) this.#lateArrivals++;
  }

  #answered(id: number, tick: number): void {
    const { nextTurn, thinkTicks, classes } = this.requests;
    this.#inFlight[classes[id]]--;
    const next = nextTurn[id];
    if (next !== NO_REQUEST || thinkTicks[id] > 0) this.#answeredTurns.push([id, tick]);
    if (next !== NO_REQUEST) this.#arrive(next, tick + thinkTicks[next]);
  }
}

/** An action in the simulator's words. Replicas beyond those that there are GPUs for wait, as pods do in Kubernetes. */
function fleetSettings({ maxReplicas, second }: FleetTask, action: FleetAction): FleetSettings {
  const first = Math.min(maxReplicas, action.replicas);
  return {
    replicas: second === undefined ? [first] : [first, Math.min(maxReplicas - first, action.second_replicas)],
    prefillReplicas: Math.min(maxReplicas, action.prefill_replicas),
    routing: { queue: 1, cache: action.routing_cache, prefix: action.routing_prefix },
    admissionSeconds:
      action.admission_seconds >= ADMIT_ALL_SECONDS ? Number.POSITIVE_INFINITY : action.admission_seconds,
    maxNumBatchedTokens: action.max_num_batched_tokens,
    maxNumSeqs: action.max_num_active_seqs,
  };
}

/** Link between a host and one of its GPUs, GB/s: PCIe 4.0. */
const HOST_LINK_GB_S = 25;

/** The kinds of replicas of a task, with their profiles. */
export function fleetPools(task: FleetTask) {
  const { hostKvGiB: sizeGiB } = task;
  return poolsOf(task).map(({ profile: name, coldStartSeconds, spot }) => {
    const profile = findProfile(name);
    const hostKv = sizeGiB === undefined ? profile.hostKv : { sizeGiB, gigabytesPerSecond: HOST_LINK_GB_S };
    return {
      profile: hostKv === undefined ? profile : { ...profile, hostKv },
      coldStartSeconds,
      reclaim: spot && { perHour: spot.reclaimsPerHour, noticeSeconds: spot.noticeSeconds },
    };
  });
}

function poolsOf(task: FleetTask): readonly FleetPoolTask[] {
  return task.second === undefined ? [task] : [task, task.second];
}

function describeServer(task: FleetTask, profiles: readonly EngineProfile[]): FleetServer {
  const { maxReplicas, prices, objectives } = task;
  const [interactive] = REQUEST_CLASSES;
  const { usdPerMillionInput, usdPerMillionOutput, usdPerMillionRepeated } = prices[interactive];
  const [first, second] = poolsOf(task).map((pool, i) => describeReplica(pool, profiles[i]));
  const none = Object.fromEntries(Object.keys(first).map((name) => [name, 0])) as typeof first;
  return {
    ...first,
    second: second ?? none,
    max_replicas: maxReplicas,
    usd_per_million_input_tokens: usdPerMillionInput,
    usd_per_million_repeated_tokens: usdPerMillionRepeated ?? usdPerMillionInput,
    usd_per_million_output_tokens: usdPerMillionOutput,
    ttft_objective_ms: objectives[interactive].ttftMs ?? 0,
    tpot_objective_ms: objectives[interactive].tpotMs ?? 0,
  };
}

function describeReplica(
  { coldStartSeconds, spot }: FleetPoolTask,
  profile: EngineProfile,
): ReplicaDescription {
  const { law } = weightVariant(profile, 'FP16');
  return {
    step_base_ms: (law.baseUs + law.weightReadUs) / 1000,
    step_token_us: law.perTokenUs,
    step_sequence_us: law.perDecodeSequenceUs,
    step_context_ns: law.perContextTokenNs,
    kv_cache_tokens: kvTokens(profile, kvPoolBlocks(profile, 'FP16', false, 1)),
    host_kv_tokens: Math.floor(((profile.hostKv?.sizeGiB ?? 0) * 2 ** 30) / profile.model.kvBytesPerToken),
    cold_start_seconds: (coldStartSeconds[0] + coldStartSeconds[1]) / 2,
    usd_per_replica_hour: profile.gpu.count * profile.gpu.usdPerHour * (spot?.priceShare ?? 1),
    reclaims_per_hour: spot?.reclaimsPerHour ?? 0,
  };
}
