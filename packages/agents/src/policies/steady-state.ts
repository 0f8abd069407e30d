import {
  type Feature,
  holdMaskedKnobs,
  llmserve,
  REQUEST_CLASSES,
  type ServeAction,
  type ServeObservation,
  type ServeTask,
  serverOf,
} from '@servegym/environments';
import {
  DraftTimer,
  type EngineProfile,
  IterationTimer,
  kvMemoryGiB,
  portableMath,
  TICKS_PER_MS,
  weightChangeSeconds,
  weightVariant,
} from '@servegym/simulator';
import type { Policy, SeenWindow } from '../core/policy.ts';
import { episodePolicy } from './catalogue.ts';

type Tier = ServeAction['quantization_tier'];
const TIERS = llmserve.bins.quantization_tier;
const DEPTHS = [0, 1, 2, 3, 4, 5, 6] as const;
const GB_PER_GIB = 2 ** 30 / 1e9;

/*
 * Choices, made on validation episodes of the training distribution: mean return of 300 of them in docs/agents.md.
 */
const BATCH_CAP = 512;
/** Room in the KV pool over the mean of what `sequences` hold: for a mean that rises, and for the spread around it. */
const SPARE = { mean: 0.3, spread: 3 };
/** Memory of each GPU that is left free beside the most that tenants take, GB. */
const HEADROOM_GB = 0.3;
/** Windows over which another precision has to repay its reload, and reward a window that it has to gain beyond that. */
const REPAY_WINDOWS = 12;
const HESITATION = 0.12;
/** Weights of the newest window in the estimates of arrivals, of answers, and of how fast prompts are prefilled. */
const NEWEST = { arrivals: 0.6, answers: 0.15, prefill: 0.3 };
/** Windows over which answers are counted: tokens emitted over requests that have left. */
const ANSWER_WINDOWS = 8;
/** Mean answer that is believed in before any was counted, tokens. */
const FIRST_ANSWER = 200;
/**
 * Share of the windows left that serving a backlog may take. Beyond it no request in it will be in time: then a pool for so
 * many sequences is the cheapest.
 */
const MOST_DRAIN = 0.6;
const LOST_SEQUENCES = 2;
/** Windows without load that the mean load of an episode starts from. */
const PRIOR_WINDOWS = 10;
/** Spread of the logarithm of times around what is predicted: per output token, and to the first. */
const SPREAD = { tpot: 0.3, ttft: 0.8 };
/** Least charge for a precision whose smallest KV pool does not fit beside the tenants: the server would go down. */
const NO_ROOM = 0.6;

/** What is believed of the traffic. */
interface Belief {
  /** Engines of the server. */
  engines: number;
  /** Arrivals a second on each engine. */
  rate: number;
  /** Mean tokens of prompts and answers. */
  prompt: number;
  answer: number;
  /** Measured over predicted time of prefill: less than 1 where prefixes are cached. */
  prefill: number;
  /** Sequences that decode on each engine now, and the time that they get a token in, ms; 0 where none do. */
  running: number;
  tokenMs: number;
  /** Requests that waited or ran at the end of the last window. */
  requests: number;
  /** Sum over the windows of arrivals over what each engine could serve. */
  loads: number;
  /** Windows that serving the backlog will take, over those left. */
  drain: number;
}

/** Latencies, share of the traffic that is served, and KV pool, GB a GPU, of a steady state. */
type SteadyFigures = Readonly<Record<'tpotMs' | 'ttftMs' | 'served' | 'poolGb', number>>;

/** The laws of a server as the steady state needs them. */
class Server {
  readonly task: ServeTask;
  readonly profile: EngineProfile;
  readonly gpuGb: number;
  /** Memory of each GPU that is outside of the largest pool and that no tenant takes, GB; below 0 where tenants take more. */
  readonly #besideGb: number;
  readonly #timers: Readonly<Record<Tier, IterationTimer>>;
  readonly #drafts: DraftTimer | null;
  readonly #kvGbPerToken: number;

  constructor(task: ServeTask, profile: EngineProfile) {
    const { gpu, model, speculation } = profile;
    this.task = task;
    this.profile = profile;
    this.gpuGb = gpu.memoryGiB * GB_PER_GIB;
    const tenantGiB = Math.max(...task.phases.map((phase) => phase.tenantGiB[1]));
    this.#besideGb = this.gpuGb * (1 - profile.memory.utilization) - tenantGiB * GB_PER_GIB - HEADROOM_GB;
    const timers = TIERS.map((tier) => [tier, new IterationTimer(weightVariant(profile, tier).law)]);
    this.#timers = Object.fromEntries(timers) as Record<Tier, IterationTimer>;
    this.#drafts = speculation === null ? null : new DraftTimer(speculation);
    this.#kvGbPerToken = model.kvBytesPerToken / gpu.count / 1e9;
  }

  weightsGb(tier: Tier): number {
    return weightVariant(this.profile, tier).weightGiB * GB_PER_GIB;
  }

  /** The largest KV pool, GB a GPU. */
  poolGb(tier: Tier): number {
    return kvMemoryGiB(this.profile, tier, true) * GB_PER_GIB;
  }

  /** The largest KV pool that fits beside the tenants whenever they take most, GB a GPU. */
  roomGb(tier: Tier): number {
    return this.poolGb(tier) + Math.min(0, this.#besideGb);
  }

  prefillMs(tier: Tier, tokens: number): number {
    return this.#timers[tier].fixedTicks(Math.round(tokens), 0, (tokens * tokens) / 2) / TICKS_PER_MS;
  }

  /** Time of an iteration of `sequences` sequences with `depth` drafts each, ms. @param context tokens of each sequence */
  #stepMs(tier: Tier, depth: number, sequences: number, context: number): number {
    const count = Math.max(1, Math.round(sequences));
    const timer = this.#timers[tier];
    const ticks =
      timer.fixedTicks(count * (depth + 1), count, 0) + count * context * timer.contextTicks(count);
    const drafts = depth > 0 ? (this.#drafts?.ticks(depth, count, count * context) ?? 0) : 0;
    return (ticks + drafts) / TICKS_PER_MS;
  }

  /**
   * Little's law: as many sequences decode as arrive in the time that one takes, which depends on how many decode.
   * @param kinds phases that are on as far as their price of quality tells
   */
  steadyState(tier: Tier, depth: number, belief: Belief, kinds: ServeTask['phases']) {
    const { task, profile } = this;
    const { rate, prompt, answer } = belief;
    const survival = profile.speculation?.survival[kinds[0]!.acceptance ?? task.acceptance] ?? [];
    let tokens = 1;
    for (let i = 0; i < depth; i++) tokens += survival[i] ?? 0;
    const context = prompt + answer / 2;
    const prefill = belief.prefill * this.prefillMs(tier, prompt);
    // Weights are read for the decodes of an iteration anyway.
    const beside = Math.max(prefill - this.prefillMs(tier, 1), 0.3 * prefill);
    const load = (rate * beside) / 1000;
    const decoding = 1 - Math.min(0.95, load);
    const room = Math.max(this.roomGb(tier), 0.1 * this.poolGb(tier));
    const most = Math.min(BATCH_CAP, room / this.#kvGbPerToken / context);
    const decoded = (1000 * most * tokens) / this.#stepMs(tier, depth, most, context) / answer;
    const capacity = decoded / (1 + (decoded * beside) / 1000);
    const tokenMs = (sequences: number) => this.#stepMs(tier, depth, sequences, context) / tokens / decoding;
    let sequences = Math.min(1, most);
    for (let i = 0; i < 20; i++) {
      const next = Math.min(most, (rate * answer * tokenMs(sequences)) / 1000);
      if (Math.abs(next - sequences) < 0.02 * sequences) break;
      sequences = Math.max(0.05, (sequences + next) / 2);
    }
    // What runs now says more than the estimate of answers, which lags behind a crowd.
    if (belief.tokenMs > 0) {
      const crowd = belief.running * Math.min(3, tokenMs(sequences) / belief.tokenMs);
      sequences = Math.min(most, Math.max(sequences, crowd));
    }
    const tpotMs = tokenMs(sequences);
    const offered = rate * answer;
    const served = sequences < 0.98 * most ? 1 : Math.min(1, (1000 * sequences) / tpotMs / offered);
    const ttftMs = prefill / decoding + tpotMs * tokens + 1e5 * (1 - served);
    const isLost = belief.drain > MOST_DRAIN;
    const poolGb = isLost
      ? LOST_SEQUENCES * context * this.#kvGbPerToken
      : Math.min(this.poolGb(tier), Math.max(1, sequences) * context * this.#kvGbPerToken * spare(sequences));
    const figures = { tpotMs, ttftMs, served, poolGb };
    return {
      ...figures,
      /** Of a window. */
      reward: this.#reward(tier, depth, figures, offered * served, kinds),
      /** Prefill that arrives, over what a GPU can do. */
      load,
      /** Whether no pool helps any more. */
      isLost,
      /** Requests a second that each engine can serve with a full pool. */
      capacity,
    };
  }

  /** @param emitted tokens a second of each engine */
  #reward(
    tier: Tier,
    depth: number,
    { tpotMs, ttftMs, served, poolGb }: SteadyFigures,
    emitted: number,
    kinds: ServeTask['phases'],
  ): number {
    const { task, profile } = this;
    const { gpu, speculation } = profile;
    const { reward, objectives } = task;
    let attained = 0;
    let judged = 0;
    for (const kind of REQUEST_CLASSES) {
      const { weight, ttftMs: ttft, tpotMs: tpot } = objectives[kind];
      const share = weight * kinds.reduce((sum, { traffic }) => sum + (traffic[kind]?.share ?? 0), 0);
      judged += share;
      attained += share * likelihood(tpot / tpotMs, SPREAD.tpot) * likelihood(ttft / ttftMs, SPREAD.ttft);
    }
    const draftGb = depth > 0 ? (speculation?.draftGiB ?? 0) * GB_PER_GIB : 0;
    const usd = (gpu.count * gpu.usdPerHour) / 3600 / (emitted / 1000);
    return (
      reward.throughput * served +
      (reward.slo * attained) / judged -
      (reward.memory * (this.weightsGb(tier) + draftGb + poolGb)) / this.gpuGb -
      reward.cost * Math.min(1, usd / task.referenceCostPer1k) -
      kinds[0]!.qualityValue * (1 - weightVariant(profile, tier).quality)
    );
  }
}

/** KV pool over the mean of what so many sequences hold. */
function spare(sequences: number): number {
  return 1 + SPARE.mean + SPARE.spread / Math.sqrt(Math.max(1, sequences));
}

/** Chance that a time whose logarithm spreads so much stays under a bound this many times the predicted one. */
function likelihood(ratio: number, spread: number): number {
  return 1 / (1 + portableMath.pow(ratio, -1.7 / spread));
}

export type ServeWindow = SeenWindow<ServeAction, ServeObservation>;

/** Figures of the steady state of a precision that a learner sees. */
const PREDICTED = ['margin', 'tpot', 'ttft', 'served', 'pool', 'room', 'load', 'depth', 'chosen'] as const;
const BELIEVED = ['reward', 'answer', 'cached', 'drain', 'slower'] as const;
type Outlook = Readonly<Record<string, number>>;

/** What a learner sees of the steady states, beside the window: each about 0 to 1. */
export const OUTLOOK_FEATURES: readonly Feature[] = [
  ...TIERS.flatMap((tier) => PREDICTED.map((figure) => `${tier}_${figure}`)),
  ...BELIEVED,
].map((name) => ({ name: `steady_${name}`, of: `outlook.${name}` }));

/** What the steady states of a window advise. */
export interface SteadyAdvice {
  readonly action: ServeAction;
  /** The figures of `OUTLOOK_FEATURES`, until the next window. */
  outlook(): Outlook;
  /** Windows that serving the backlog will take. */
  readonly drain: number;
  /** Place of its precision among `TIERS`. */
  readonly tier: number;
  /** The configuration with the precision of this place. */
  at(tier: number): ServeAction;
}

/**
 * Takes the configuration whose steady state earns most: from the iteration-time model of the server, its memory and the
 * prices of its task, for the traffic of the last windows. It changes the precision where the gain repays the reload. The
 * division of the GPUs stays as the task has it.
 */
export class SteadyAdvisor {
  #server: Server;
  /** Description that the server was last compared with. */
  #described: ServeObservation['server'] | undefined;
  #belief: Belief = {
    ...{ engines: 1, rate: 0, prompt: 0, answer: FIRST_ANSWER, prefill: 1, running: 0, tokenMs: 0 },
    ...{ requests: 0, loads: 0, drain: 0 },
  };
  #windows: Served[] = [];

  constructor(task: ServeTask, profile: EngineProfile, server = new Server(task, profile)) {
    this.#server = server;
  }

  /** An advisor that has seen the same windows. */
  fork(): SteadyAdvisor {
    const forked = new SteadyAdvisor(this.#server.task, this.#server.profile, this.#server);
    forked.#belief = { ...this.#belief };
    forked.#windows = [...this.#windows];
    forked.#described = this.#described;
    return forked;
  }

  /** The server by what the observation says of it: an estimate changes. */
  #describedServer(described: ServeObservation['server']): Server {
    const known = this.#described;
    this.#described = described;
    if (known === described || JSON.stringify(known) === JSON.stringify(described)) return this.#server;
    const { task, profile } = this.#server;
    const seen = llmserve.describedProfile(task, profile, described);
    if (seen !== profile) this.#server = new Server(task, seen);
    return this.#server;
  }

  /** Call it once for each window, in order. */
  advise({ observation: seen, previousAction: inForce, stepIndex }: ServeWindow): SteadyAdvice {
    const server = this.#describedServer(seen.server);
    const belief = this.#belief;
    const { task, profile } = server;
    const { quantization_tier: current } = inForce;
    belief.engines = seen.server.engines;
    if (stepIndex > 0) watch(server, belief, this.#windows, seen, current);
    const priced = task.phases.filter(
      ({ qualityValue }) => Math.abs(qualityValue - seen.quality_value) < 1e-9,
    );
    const kinds = priced.length > 0 ? priced : task.phases;
    const states = TIERS.map((tier) => {
      const depths = DEPTHS.map((depth) => ({
        ...{ tier, depth },
        ...server.steadyState(tier, depth, belief, kinds),
      }));
      const best = depths.reduce((a, b) => (b.reward > a.reward ? b : a));
      const change =
        tier === current
          ? 0
          : HESITATION + weightChangeSeconds(profile, current, tier) / task.windowSeconds / REPAY_WINDOWS;
      const noRoom = server.roomGb(tier) < 0.1 * server.poolGb(tier) ? NO_ROOM : 0;
      return { ...best, gain: best.reward - change - noRoom };
    });
    const chosen = states.reduce((a, b) => (b.gain > a.gain ? b : a));
    const { tpotMs } = states.find(({ tier }) => tier === current)!;
    const drain = drainWindows(belief, seen, Math.max(...states.map(({ capacity }) => capacity)), task);
    belief.drain = drain / (task.windows - stepIndex);
    const held = chosen.isLost ? 0 : seen.relative.kv_held * server.gpuGb * spare(belief.running);
    const configured = ({ tier, depth, poolGb }: (typeof states)[number]): ServeAction => {
      const pool = Math.min(Math.max(held, 0.8 * poolGb), server.roomGb(tier)) / server.poolGb(tier);
      return {
        ...task.defaultAction,
        batch_cap: BATCH_CAP,
        quantization_tier: tier,
        speculation_depth: depth,
        priority_routing: true,
        // In whole hundredths: steps do not drift.
        kv_budget_fraction: Math.min(1, Math.max(0.1, Math.round(100 * pool) / 100)),
      };
    };
    const at = (tier: number) =>
      holdMaskedKnobs(task, stepIndex === 0 ? task.defaultAction : configured(states[tier]!));
    const outlook = (): Outlook => {
      const { interactive } = task.objectives;
      const predicted = states.flatMap((state) => {
        const { tier, gain, ttftMs, served, poolGb, depth } = state;
        const figures = {
          margin: gain - chosen.gain,
          tpot: portableMath.log(state.tpotMs / interactive.tpotMs),
          ttft: Math.min(4, portableMath.log(ttftMs / interactive.ttftMs)),
          ...{ served, pool: poolGb / server.gpuGb, room: server.roomGb(tier) / server.gpuGb },
          ...{ load: Math.min(4, state.load), depth: depth / 6, chosen: Number(state === chosen) },
        };
        return PREDICTED.map((name) => [`${tier}_${name}`, figures[name]] as const);
      });
      return {
        ...Object.fromEntries(predicted),
        reward: chosen.reward,
        answer: portableMath.log(belief.answer / FIRST_ANSWER),
        cached: 1 - belief.prefill,
        drain: Math.min(1, belief.drain),
        slower: belief.tokenMs > 0 ? portableMath.log(belief.tokenMs / tpotMs) : 0,
      };
    };
    return {
      action: at(states.indexOf(chosen)),
      ...{ outlook, drain },
      tier: states.indexOf(chosen),
      at,
    };
  }
}

/** The configuration of the best steady state. */
export function playSteadyState(
  task: ServeTask,
  profile: EngineProfile,
): (window: ServeWindow) => ServeAction {
  const advisor = new SteadyAdvisor(task, profile);
  return (window) => advisor.advise(window).action;
}

/** Windows that serving the backlog takes beside the mean load of the episode so far; as many as there are if it grows. */
function drainWindows(
  belief: Belief,
  { step_index, request_arrival_rate, queue_depth }: ServeObservation,
  capacity: number,
  { windowSeconds, windows }: ServeTask,
): number {
  // Loads, not arrivals: requests of another phase may be longer.
  belief.loads += request_arrival_rate / belief.engines / capacity;
  const idle = 1 - belief.loads / (step_index + PRIOR_WINDOWS);
  const seconds = queue_depth / belief.engines / capacity / Math.max(1e-9, idle);
  return Math.min(windows, seconds / windowSeconds);
}

/** Figures of a window, a second: tokens emitted, and requests that have left. */
interface Served {
  readonly emitted: number;
  readonly left: number;
}

function watch(server: Server, belief: Belief, windows: Served[], seen: ServeObservation, tier: Tier): void {
  const { request_arrival_rate: arrived, mean_prompt_length: prompt, queue_depth: queue } = seen;
  const towards = (old: number, next: number, weight: number) =>
    old === 0 ? next : old + weight * (next - old);
  // A queue has to be served as well.
  const waiting = Math.min(1, queue / (1 + 30 * arrived));
  belief.rate = towards(
    belief.rate,
    Math.max(0.01, (arrived / belief.engines) * (1 + waiting)),
    NEWEST.arrivals,
  );
  if (prompt > 0) belief.prompt = towards(belief.prompt, prompt, NEWEST.arrivals);
  const requests = queue + seen.active_requests;
  const left = arrived - (requests - belief.requests) / server.task.windowSeconds;
  belief.requests = requests;
  windows.push({ emitted: seen.throughput_tps, left });
  if (windows.length > ANSWER_WINDOWS) windows.shift();
  const total = (of: keyof Served) => windows.reduce((sum, window) => sum + window[of], 0);
  if (total('left') > 0) {
    const answer = Math.min(3000, Math.max(10, total('emitted') / total('left')));
    belief.answer = towards(belief.answer, answer, NEWEST.answers);
  }
  if (queue === 0 && prompt > 0 && seen.p50_ttft_ms > 0) {
    const measured = Math.min(1, Math.max(0.1, seen.p50_ttft_ms / server.prefillMs(tier, prompt)));
    belief.prefill += NEWEST.prefill * (measured - belief.prefill);
  }
  belief.running = seen.active_requests / belief.engines;
  belief.tokenMs = seen.p50_itl_ms;
}

/** The policy of an episode on the server and the traffic that its reset asked for. */
export function steadyStatePolicy(): Policy<ServeAction, ServeObservation> {
  return episodePolicy('steady-state', ({ taskId, resetOptions }) => {
    const task = llmserve.choose({ ...resetOptions, task_id: taskId });
    return playSteadyState(task, serverOf(task));
  });
}
