import {
  type FleetAction,
  type FleetController,
  type FleetObservation,
  fleet,
  hpaInFlight,
  rateRule,
  type ScalingPolicy,
  scalingController,
  totalArrivals,
} from '@servegym/environments';
import {
  type PolicyFunctions,
  podAutoscaler,
  portableMath,
  type ScaledFleet,
  startPolicy,
} from '@servegym/simulator';
import { z } from 'zod';
import type { Policy } from '../core/policy.ts';
import { decodePolicy, FLEET_LEARNER, jsonPolicy } from '../learning/learners.ts';
import anyServer from './any-fleet.json' with { type: 'json' };
import { catalogue, createFrom, unknownPolicy } from './catalogue.ts';
import policies from './policies.json' with { type: 'json' };

/** Sequences of the largest profiled decode batch. */
const LARGEST_BATCH = 512;
/** The corrected objective stays above an empty iteration by this share, where no batch could meet it. */
const LEAST_ROOM = 0.1;

/**
 * NVIDIA Dynamo's SLA planner in its throughput mode: forecast the requests of the next interval and their lengths, divide
 * them by the throughput that profiling found for a replica inside the objectives, and correct it by how much slower the
 * running fleet is than the profile says. The forecast is Dynamo's `constant` predictor: the next interval is like the last.
 *
 * Prefill and decode of Dynamo stand on replicas of their own. Those of a fleet do both, so that their needs are added
 * before they are rounded up. The profile is that of the iteration law in `observation.server`, for batches of 1 to 512
 * sequences: the law is linear in them, so that nothing is to be interpolated.
 * https://docs.nvidia.com/dynamo/design-docs/planner-design
 */
function slaPlanned(observation: FleetObservation, fleet: ScaledFleet, now: number): number {
  const { server, replicas_ready: ready, replicas_starting: starting } = observation;
  const arrivals = totalArrivals(observation);
  // It waits until the workers are there that it asked for.
  if (now === 0 || ready === 0 || starting > 0 || arrivals === 0) return fleet.replicas!;
  const prompt = observation.arrived_prompt_tokens_per_second / arrivals;
  const answer = observation.request_generation_tokens_mean;
  const context = prompt + answer / 2;
  const { tpot_objective_ms: objectiveMs } = server;

  const perReplica = observation.num_requests_running / ready;
  const expectedMs = interTokenMs(server, perReplica, context);
  const slower = (observation.inter_token_latency_seconds_p50 * 1000) / expectedMs;
  const correction = slower > 0 ? slower : 1;
  const wanted = Math.ceil(replicasOf(observation, arrivals, objectiveMs / correction));
  return Math.max(1, Math.min(server.max_replicas, wanted));
}

/** Replicas for the window's requests, each with the throughput that a profiled one has inside an inter-token latency. */
function replicasOf(observation: FleetObservation, arrivals: number, objectiveMs: number): number {
  const { server, request_generation_tokens_mean: answer } = observation;
  const context = observation.arrived_prompt_tokens_per_second / arrivals + answer / 2;
  const prompts = observation.arrived_prompt_tokens_per_second * (1 - observation.prefix_cache_hit_rate);
  const prefill = (prompts * server.step_token_us) / 1e6;
  const itl = Math.max(objectiveMs, server.step_base_ms * (1 + LEAST_ROOM));
  return prefill + (arrivals * answer) / decodeTokensPerSecond(server, context, itl);
}

type Server = FleetObservation['server'];

/** Time that a sequence with `context` tokens adds to an iteration, ms. */
const sequenceMs = (server: Server, context: number) =>
  server.step_sequence_us / 1000 + (server.step_context_ns * context) / 1e6;

/** Time between two tokens of a profiled batch of sequences with `context` tokens each, ms. */
function interTokenMs(server: Server, sequences: number, context: number): number {
  return server.step_base_ms + sequenceMs(server, context) * Math.min(LARGEST_BATCH, Math.max(1, sequences));
}

/** Most output tokens a second of a replica whose inter-token latency stays within `itl` ms. */
function decodeTokensPerSecond(server: Server, context: number, itl: number): number {
  const inTime = (itl - server.step_base_ms) / sequenceMs(server, context);
  const fits = server.kv_cache_tokens / context;
  const batch = Math.min(LARGEST_BATCH, Math.max(1, inTime), fits);
  return (batch / interTokenMs(server, batch, context)) * 1000;
}

/** A controller of a fleet. */
export type FleetPolicy = Policy<FleetAction, FleetObservation>;

const reference = (taskId: string) => fleet.anchors.reference(taskId);

/**
 * `rateRule` with the parameters that were tuned for the task it plays, where there are any.
 * @param asked tokens a replica, held on every task
 */
function tunedRateRule(asked?: number): ScalingPolicy {
  const ruleOf = (taskId: string) =>
    startPolicy(rateRule({ ...reference(taskId)?.rule, ...(asked && { tokensPerReplica: asked }) }));
  return () => {
    let rule: ReturnType<typeof ruleOf> | undefined;
    return {
      scale(metrics, inForce, now) {
        rule ??= ruleOf(metrics.task_id);
        return rule.scale!(metrics, inForce, now);
      },
    };
  };
}

/** Kubernetes' HorizontalPodAutoscaler for the replicas, with other settings beside it. */
function scaled(
  name: string,
  target: number | undefined,
  settings: (metrics: FleetObservation) => Partial<FleetAction>,
): FleetPolicy {
  const scaler = hpaInFlight(target);
  return {
    name: `${name}:${scaler.name.split(':')[1]}`,
    reset: () => scaler.reset(),
    act: (step) => ({ ...scaler.act(step), ...settings(step.observation) }),
  };
}

/**
 * Weights of a gateway that prefers replicas which know the prompt: those of llm-d's sample configuration with its prefix
 * cache scorer (2) and its load-aware scorer (1). https://github.com/llm-d/llm-d-inference-scheduler (deploy/config)
 */
const PREFIX_WEIGHTS: Partial<FleetAction> = { routing_prefix: 2 };

/** Prompts being prefilled or waiting on a replica from which on P-PAS sees pressure. */
const PRESSURE_PREFILLS = 2;
/** Token budgets of P-PAS without and under pressure. */
const BUDGET = 16_384;
const BUDGET_UNDER_PRESSURE = 2048;

/**
 * Token budget of P-PAS, which caps the prefill of an iteration at 2,048 tokens while two prompts or more are being prefilled
 * or wait, and something is being decoded, and lets 16,384 pass otherwise. The scheduler decides that each iteration, a
 * controller each window, on a mean replica: the prompts that wait, and the share of the time in which one is prefilled.
 * https://github.com/TimoSaemann/ppas-vllm (scheduler/ppas_vllm_0.22.1.patch)
 */
function pressureBudget(observation: FleetObservation): Partial<FleetAction> {
  const { replicas_ready, num_requests_waiting, num_requests_running, server } = observation;
  const prefilled = (observation.prompt_tokens_per_second * server.step_token_us) / 1e6;
  const prefills = (num_requests_waiting + prefilled) / Math.max(1, replicas_ready);
  const pressure = prefills >= PRESSURE_PREFILLS && num_requests_running > 0;
  return { max_num_batched_tokens: pressure ? BUDGET_UNDER_PRESSURE : BUDGET };
}

/** Thresholds of the workload variant autoscaler's saturation mode, its defaults. */
const KV_CACHE_THRESHOLD = 0.8;
const QUEUE_LENGTH_THRESHOLD = 5;
const KV_SPARE_TRIGGER = 0.1;
const QUEUE_SPARE_TRIGGER = 3;

/**
 * One replica more when the replicas have too little to spare below saturation, one less when they would still have enough
 * to spare without one: llm-d's workload variant autoscaler in its saturation mode, on the means over the replicas. It
 * waits while replicas start or drain.
 * https://github.com/llm-d-incubation/workload-variant-autoscaler (docs, saturation scaling)
 */
function saturationScaled(observation: FleetObservation, fleet: ScaledFleet, now: number): number {
  const { replicas_ready: ready, replicas_starting, replicas_draining, server } = observation;
  const replicas = fleet.replicas!;
  if (now === 0 || ready === 0 || replicas_starting + replicas_draining > 0) return replicas;
  const kv = observation.kv_cache_usage_perc;
  const queue = observation.num_requests_waiting / ready;
  if (!hasSpare(kv, queue)) return Math.min(server.max_replicas, replicas + 1);
  const share = ready / (ready - 1);
  return ready > 1 && hasSpare(kv * share, queue * share) ? replicas - 1 : replicas;
}

function hasSpare(kv: number, queue: number): boolean {
  return KV_CACHE_THRESHOLD - kv >= KV_SPARE_TRIGGER && QUEUE_LENGTH_THRESHOLD - queue >= QUEUE_SPARE_TRIGGER;
}

/** Largest saturation that counts: more says only that there is a queue. */
const MOST_SATURATION = 2;

/**
 * Saturation of the fleet by its objectives, as llm-d's SLO-aware autoscaling with KEDA defines it: the worse of the times to
 * first token and between tokens over their objectives, at most 2. It is taken over a window of 30 s, and of the 99th
 * percentile, which the fleet reports.
 * https://llm-d.ai/docs/dev/architecture/advanced/autoscaling/slo-aware-keda
 */
function sloSaturation(metrics: FleetObservation): number {
  const { server, time_to_first_token_seconds_p99: ttft, inter_token_latency_seconds_p99: itl } = metrics;
  const over = (seconds: number, objectiveMs: number) =>
    objectiveMs > 0 ? (1000 * seconds) / objectiveMs : 0;
  const saturation = Math.max(over(ttft, server.ttft_objective_ms), over(itl, server.tpot_objective_ms));
  return Math.min(MOST_SATURATION, saturation);
}

/** Windows of 30 s whose load aibrix's optimizer looks at: four minutes. */
const OPTIMIZER_WINDOWS = 8;

/**
 * aibrix's GPU optimizer for one kind of GPU: the load of the last minutes over the throughput that a profiled replica has
 * inside the objectives. It reads requests and not latencies, and corrects nothing.
 * https://aibrix.readthedocs.io/latest/features/heterogeneous-gpu.html
 */
function optimized(): PolicyFunctions<FleetObservation> {
  const loads: number[] = [];
  return {
    scale(metrics, fleet, now) {
      const arrivals = totalArrivals(metrics);
      if (now === 0 || arrivals === 0) return fleet.replicas!;
      loads.push(replicasOf(metrics, arrivals, metrics.server.tpot_objective_ms));
      if (loads.length > OPTIMIZER_WINDOWS) loads.shift();
      const wanted = Math.ceil(loads.reduce((sum, load) => sum + load, 0) / loads.length);
      return Math.max(1, Math.min(metrics.server.max_replicas, wanted));
    },
  };
}

/** Share of the replicas that `spot` has on the second kind, where that may be taken back. */
const SPOT_SHARE = 0.5;

/** The tuned rule, with a share of its replicas on spot capacity and one more for those that are taken back. */
function onSpot(share = SPOT_SHARE): FleetPolicy {
  const rule = scalingController('rule', tunedRateRule());
  return {
    name: 'spot',
    reset: () => rule.reset(),
    act(step) {
      const { previousAction, observation } = step;
      const { second, max_replicas } = observation.server;
      const inForce = previousAction.replicas + previousAction.second_replicas;
      const action = rule.act({ ...step, previousAction: { ...previousAction, replicas: inForce } });
      if (second.usd_per_replica_hour === 0) return action;
      const spot = Math.round(share * action.replicas);
      const replicas = action.replicas - spot;
      const spare = spot > 0 ? 1 : 0;
      return { ...action, replicas, second_replicas: Math.min(max_replicas - replicas, spot + spare) };
    },
  };
}

/** Requests that wait a replica: the threshold of the KEDA tutorial of vLLM's production stack. */
const QUEUE_TARGET = 5;

/** The policies of `fleet`. Each may have a number behind its name: `hpa`, `hpa:30`, `static:8`. */
export const FLEET_POLICIES = catalogue<FleetAction, FleetObservation>(policies.fleet, {
  // As many replicas all the time: by default the best in training on the task; the task's own where nothing is recorded.
  static: (asked) =>
    scalingController(asked === undefined ? 'static' : `static:${asked}`, {
      scale: ({ task_id: id }, inForce) => asked ?? reference(id)?.constantReplicas ?? inForce.replicas!,
    }),
  hpa: (target) => hpaInFlight(target),
  keda: (targetPerReplica = QUEUE_TARGET) =>
    scalingController(
      `keda:${targetPerReplica}`,
      podAutoscaler(({ num_requests_waiting: total, server }: FleetObservation) => ({
        ...{ total, targetPerReplica, most: server.max_replicas },
      })),
    ),
  saturation: () => scalingController('saturation', { scale: saturationScaled }),
  slo: (targetPerReplica = 1) =>
    scalingController(
      `slo:${targetPerReplica}`,
      // A metric of the whole fleet: HPA asks for replicas in proportion to it.
      podAutoscaler((metrics: FleetObservation) => ({
        total: sloSaturation(metrics) * metrics.replicas_ready,
        ...{ targetPerReplica, most: metrics.server.max_replicas },
      })),
    ),
  aibrix: () => scalingController('aibrix', optimized),
  'sla-planner': () => scalingController('sla-planner', { scale: slaPlanned }),
  'prefix-router': (target) => scaled('prefix-router', target, () => PREFIX_WEIGHTS),
  'p-pas': (target) => scaled('p-pas', target, pressureBudget),
  spot: (share) => onSpot(share),
  rule: (tokensPerReplica) => scalingController('rule', tunedRateRule(tokensPerReplica)),
  'any-server'(sloAttainment) {
    if (sloAttainment === undefined) return demandPolicy(anyServer.parameters, 'any-server');
    const name = `any-server:${sloAttainment}`;
    if (sloAttainment <= 1) return demandPolicy({ ...anyServer.parameters, sloAttainment }, name);
    throw unknownPolicy(['any-server:0.95, for 95 % of the requests inside their objectives'], name);
  },
});

/**
 * A policy of `fleet` by its name, with a number where it takes one.
 * @throws EnvironmentError `UNKNOWN_POLICY`
 */
export function createFleetPolicy(spec: string): FleetPolicy {
  return createFrom(FLEET_POLICIES, spec, true);
}

/**
 * The parameters of `demandPolicy`, in units of the fleet: they stand for any server, traffic and prices. Each with where a
 * search begins, a choice, how far apart its first ones are, by difference or by ratio, and its bounds by difference.
 */
export const DEMAND_PARAMETERS = {
  /** Time between tokens that a replica is given work up to, over its objective. */
  tpotShare: { start: 0.9, ratio: 0.15 },
  /** Share of the largest demand so far that is still provided for a window later. */
  decay: { start: 0.75, difference: 0.2, most: 1 },
  /** Weight of a sudden rise of the demand beyond it. */
  surge: { start: 0.3, difference: 0.4 },
  /** Weight of the arrivals of the last seconds, where they are more than those of the window. */
  late: { start: 0.3, difference: 0.3 },
  /** Replicas beyond those that the demand asks for. */
  spareReplicas: { start: 0.5, difference: 0.4, least: -100, most: 100 },
  /**
   * Seconds of a cold start at which the demand counts half, and its mean with so many standard deviations (`spread`) the
   * other half: replicas that start slowly come too late for what asks for them.
   */
  reactionSeconds: { start: 80, ratio: 0.5 },
  /** Windows whose mean and deviation are the usual demand, once so many have been seen. */
  usualWindows: { start: 60, ratio: 0.5 },
  /** KV that replicas have room for, on GPU and host, over that of the sessions: of those that run and of those that wait. */
  sessionRoom: { start: 1.2, ratio: 0.3 },
  /** Growth of the sessions' KV during a cold start that is provided for ahead, as a share. */
  sessionTrend: { start: 0.5, difference: 0.4 },
  /** Share of the most KV of sessions so far that is still provided a window later. */
  sessionDecay: { start: 0.95, difference: 0.05, most: 1 },
  spread: { start: 2, difference: 0.5 },
  /** Room for prompts: share of the demand for each TTFT objective that the prefill of a mean prompt takes. */
  prefillRoom: { start: 0.3, difference: 0.5 },
  /** Share of the waiting requests that are to be served in the next window. */
  backlog: { start: 0.1, difference: 0.3 },
  /** Demand added a window for interactive requests that miss their objectives, and most of it, as shares. */
  correction: { start: 0.1, ratio: 0.8 },
  mostCorrection: { start: 1, ratio: 0.5 },
  /** Misses that nothing is added for, over the price of a replica's GPUs by that of what it serves. */
  allowedMisses: { start: 0.2, ratio: 0.8 },
  /** Seconds of queue above which best effort is refused. */
  admissionSeconds: { start: 0.5, ratio: 1 },
  /** Weight of prefixes in the choice of a replica, over that of few requests in flight. */
  prefixWeight: { start: 2, ratio: 0.3 },
  /** Replicas more than are asked for that are kept rather than drained: starting them again costs a cold start. */
  hold: { start: 0.2, difference: 0.2 },
  /**
   * Prefill of an iteration, over the time of an empty one: this over a power of what the TPOT objective leaves beyond an empty
   * one. Where it leaves little, prompts are to be over soon.
   */
  prefillShare: { start: 6, ratio: 0.3 },
  prefillSlack: { start: 1.3, difference: 0.2, least: -2, most: 2 },
} as const satisfies Readonly<Record<string, DemandParameter>>;

export type DemandParameter = { readonly start: number } & (
  | { readonly ratio: number }
  | { readonly difference: number; readonly least?: number; readonly most?: number }
);
export type DemandParameters = Readonly<Record<keyof typeof DEMAND_PARAMETERS, number>> & {
  /**
   * Share of all requests to serve inside their objectives with as few replicas as that takes, 0 to 1. Nothing is searched
   * here: whoever runs the fleet says it. Default: interactive requests miss as many as `allowedMisses` finds worth it.
   */
  readonly sloAttainment?: number | undefined;
};

const LARGEST = 1e9;
const demandParameters = z.object({
  ...(Object.fromEntries(
    Object.entries<DemandParameter>(DEMAND_PARAMETERS).map(([name, given]) => {
      const { least = 0, most = LARGEST } = 'ratio' in given ? { least: Number.MIN_VALUE } : given;
      return [name, z.number().min(least).max(most)];
    }),
  ) as Record<keyof typeof DEMAND_PARAMETERS, z.ZodNumber>),
  sloAttainment: z.number().min(0).max(1).optional(),
});

/** Weight of a window in the means of requests: they remember about ten minutes. A choice. */
const NEW_WEIGHT = 0.05;
/** The same in the growth of the KV of sessions: about two minutes. A choice. */
const GROWTH_WEIGHT = 0.2;

/** A rise of the demand from one window to the next is sudden from this ratio on. A choice. */
const SUDDEN = 1.25;
/** Time over which waiting work is divided, s. */
const WINDOW_SECONDS = 30;
/**
 * Most misses beyond the allowed ones that a window counts, over those, where a share is required: what comes late while replicas
 * start says little of the next hour, and a window without a miss takes back only what is allowed. A choice.
 */
const MOST_BEYOND = 6;
/** Least share of misses that this goes by, so that all can be required. A choice. */
const LEAST_ALLOWED = 0.005;
/** Least correction of the demand, as a share. A choice. */
const LEAST_CORRECTION = -0.3;
/** TPOT objective over an empty iteration where a task has none. A choice. */
const NO_TPOT_OBJECTIVE = 5;

const { routing_prefix, admission_seconds, max_num_batched_tokens } = fleet.actionSchema.shape;

/** Requests as means over the last minutes: tokens to compute of a prompt, of all of it, and of an answer. */
type MeanRequest = { readonly [Figure in 'prefill' | 'prompt' | 'output']: number };

/** What a replica can do for mean requests. */
function capacityOf(server: FleetObservation['server'], request: MeanRequest, tpotShare: number) {
  const { prefill, prompt, output } = request;
  const { step_base_ms: emptyMs, step_token_us, step_sequence_us, step_context_ns } = server;
  const tpotMs = tpotShare * (server.tpot_objective_ms || NO_TPOT_OBJECTIVE * emptyMs);
  const prefillSeconds = (prefill * step_token_us) / 1e6;
  const tokenUs = step_sequence_us + (step_context_ns * (prompt + output / 2)) / 1000;
  /** Seconds that a request adds to iterations, of the share of the time that they may take beyond empty ones. */
  const busy = prefillSeconds + (output * tokenUs) / 1e6;
  const inTime = Math.max(LEAST_ROOM, 1 - emptyMs / tpotMs) / busy;
  /** Little's law on the KV pool, each request holding its own while it decodes. */
  const inMemory = server.kv_cache_tokens / ((prompt + output) * ((output * tpotMs) / 1000 + prefillSeconds));
  const perSecond = Math.min(inTime, inMemory);
  const { usd_per_million_input_tokens: input, usd_per_million_output_tokens: answer } = server;
  const again = server.usd_per_million_repeated_tokens * (prompt - prefill);
  const usdPerHour = (3600 * perSecond * (prefill * input + again + output * answer)) / 1e6;
  return {
    perSecond,
    prefillSeconds,
    /** Price of a replica over that of what it serves. */
    cost: usdPerHour > 0 ? server.usd_per_replica_hour / usdPerHour : 1,
    /** What the TPOT objective leaves beyond an empty iteration, over it. */
    tpotRoom: Math.max(LEAST_ROOM, tpotMs / tpotShare / emptyMs - 1),
    /** Tokens whose prefill takes as long as an empty iteration. */
    emptyTokens: (emptyMs * 1000) / step_token_us,
  };
}

/**
 * Replicas for the requests that arrive and for those that wait, over what a replica of this fleet can serve of them inside
 * the objectives. Requests are means over the last minutes: lengths vary too much for those of one window to say what the
 * next will bring. Sessions have room for what they keep while they wait, too. A sudden rise is met with more than it asks for, as it goes on while replicas start; misses correct what
 * the description of the server does not tell.
 */
export function demandPolicy(parameters: DemandParameters, name = 'cem'): FleetController {
  const { tpotShare, decay, surge, late, spareReplicas, reactionSeconds, spread, prefillRoom, backlog } =
    parameters;
  const { correction, mostCorrection, allowedMisses, usualWindows } = parameters;
  const { sessionRoom, sessionTrend, sessionDecay, hold, sloAttainment: required } = parameters;
  const mostBeyond = MOST_BEYOND * Math.max(LEAST_ALLOWED, 1 - (required ?? 1));
  const within = ({ minValue, maxValue }: z.ZodNumber, value: number) =>
    Math.min(maxValue!, Math.max(minValue!, value));
  return scalingController(name, () => {
    let kept = 0;
    /** Demand of the last window; NaN before the first. */
    let lastDemand = Number.NaN;
    let request: MeanRequest | undefined;
    let corrected = 0;
    const demands = { mean: 0, variance: 0, windows: 0 };
    const memory = { need: 0, growth: 0, kept: 0 };
    /** Replicas whose memory holds the KV of the sessions, of those that run and of those that wait. */
    const memoryReplicas = ({ session_kv_tokens: waiting, ...metrics }: FleetObservation) => {
      const { kv_cache_tokens, host_kv_tokens, cold_start_seconds } = metrics.server;
      const running = metrics.kv_cache_usage_perc * metrics.replicas_ready * kv_cache_tokens;
      const need = waiting === 0 ? 0 : (waiting + running) / (kv_cache_tokens + host_kv_tokens);
      memory.growth += GROWTH_WEIGHT * (need - memory.need - memory.growth);
      memory.need = need;
      const ahead = (Math.max(0, memory.growth) * cold_start_seconds) / WINDOW_SECONDS;
      memory.kept = Math.max(need + sessionTrend * ahead, sessionDecay * memory.kept);
      return sessionRoom * memory.kept;
    };
    const see = (metrics: FleetObservation) => {
      const arrivals = totalArrivals(metrics);
      const output = metrics.request_generation_tokens_mean;
      if (arrivals === 0 || output === 0) return;
      const prompt = metrics.arrived_prompt_tokens_per_second / arrivals;
      const seen = { prompt, prefill: (1 - metrics.prefix_cache_hit_rate) * prompt, output };
      const old = request ?? seen;
      const towards = (figure: keyof MeanRequest) => old[figure] + NEW_WEIGHT * (seen[figure] - old[figure]);
      request = { prompt: towards('prompt'), prefill: towards('prefill'), output: towards('output') };
    };
    return {
      scale(metrics, inForce, now) {
        const { server } = metrics;
        const settings = {
          routing_prefix: within(routing_prefix, parameters.prefixWeight),
          admission_seconds: within(admission_seconds, parameters.admissionSeconds),
        };
        see(metrics);
        if (now === 0 || request === undefined) {
          kept = inForce.replicas!;
          return { ...settings, replicas: kept };
        }
        const capacity = capacityOf(server, request, tpotShare);
        const { perSecond, prefillSeconds, cost, emptyTokens, tpotRoom } = capacity;
        const arrivals = totalArrivals(metrics);
        const demand = (arrivals + late * Math.max(0, metrics.arrivals_last_seconds - arrivals)) / perSecond;
        const sudden = Math.max(0, demand - SUDDEN * lastDemand) || 0;
        lastDemand = demand;
        const newest = 1 / Math.min(Math.max(1, usualWindows), ++demands.windows);
        const off = demand - demands.mean;
        demands.mean += newest * off;
        demands.variance += newest * ((1 - newest) * off * off - demands.variance);
        kept = Math.max(demand + surge * sudden, decay * kept);
        // Misses while replicas are too few say nothing of what one of them can do; a required share counts some of them.
        const short = demand * (1 + corrected) > metrics.replicas_ready;
        const misses = 1 - metrics.interactive.slo_attainment - allowedMisses * cost;
        const beyond =
          required === undefined
            ? Math.min(short ? 0 : 1, misses)
            : (Math.min(mostBeyond, required - attainmentOf(metrics)) * demand) /
              Math.max(demands.mean, Number.MIN_VALUE);
        corrected = Math.min(mostCorrection, Math.max(LEAST_CORRECTION, corrected + correction * beyond));
        const ttftSeconds = server.ttft_objective_ms / 1000;
        const room = 1 + corrected + (ttftSeconds > 0 ? (prefillRoom * prefillSeconds) / ttftSeconds : 0);
        const waits = metrics.num_requests_waiting / WINDOW_SECONDS / perSecond;
        const reactive = reactionSeconds / (reactionSeconds + server.cold_start_seconds);
        const usual = demands.mean + spread * Math.sqrt(demands.variance);
        const provided = (reactive * kept + (1 - reactive) * usual) * room;
        const asked = Math.max(provided + backlog * waits, memoryReplicas(metrics));
        const wanted = asked + spareReplicas;
        const replicas = Math.max(Math.ceil(wanted), Math.min(inForce.replicas!, Math.ceil(wanted + hold)));
        const slack = portableMath.pow(tpotRoom, parameters.prefillSlack);
        const budget = (parameters.prefillShare * emptyTokens) / slack;
        return {
          ...settings,
          max_num_batched_tokens: Math.round(within(max_num_batched_tokens, budget)),
          replicas: Math.max(1, Math.min(server.max_replicas, replicas)),
        };
      },
    };
  });
}

/** Share of the requests of the last window that were in time, by the arrivals of their classes; 1 without any. */
function attainmentOf(metrics: FleetObservation): number {
  const { interactive, batch, best_effort } = metrics;
  const arrivals = totalArrivals(metrics);
  const inTime = [interactive, batch, best_effort].reduce(
    (sum, { arrivals_per_second, slo_attainment }) => sum + arrivals_per_second * slo_attainment,
    0,
  );
  return arrivals === 0 ? 1 : inTime / arrivals;
}

const DEMAND = jsonPolicy(
  'parameters',
  'the parameters of a policy of fleet',
  demandParameters,
  (_, parameters) => demandPolicy(parameters),
);

/** The policy of a file that training wrote, and its task; see `decodePolicy`. */
export function loadFleetPolicy(file: Uint8Array): { readonly taskId: string; readonly policy: FleetPolicy } {
  return decodePolicy(FLEET_LEARNER, file, [DEMAND]);
}
