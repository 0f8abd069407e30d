import type { Engine } from '../engine/engine.ts';
import type { EngineRequest } from '../engine/engine-log.ts';
import type { Dispatcher } from './dispatcher.ts';

/** Replicas that a request may be sent to, as the dispatcher and as a policy know them. */
export type Candidates = ReturnType<typeof candidates>;

export function candidates(targets: readonly Target[]) {
  return { targets, views: targets.map(({ view }) => view) };
}

/** Role of a replica: it prefills for others, decodes for others, or serves whole requests. */
export type ReplicaRole = 'prefill' | 'decode' | 'both';

/** Fixed properties of a replica. */
export interface ReplicaTraits {
  /** Place among the replicas, from 0. */
  readonly index: number;
  /** Its kind: the first or the second GPU or profile. */
  readonly kind: number;
  /** Requests in flight on it for one on a replica of the first kind (the weight of nginx's least_conn). */
  readonly weight: number;
  readonly usdPerHour: number;
}

/** A replica with its metrics as they were scraped, and what it was sent since. */
export class Target {
  declare readonly engine: Engine;
  declare readonly traits: ReplicaTraits;
  role: ReplicaRole;
  running = 0;
  waiting = 0;
  /** `null`: those of now, where the metrics are scraped at each request. */
  kvBlocksUsed: number | null = 0;
  sent = 0;
  /** Prompt tokens that it was sent and had not computed at the scrape. */
  queuedTokens = 0;
  computedTokens = 0;
  /** Time of the scrape, s. */
  scrapedAt = 0;
  /** Requests sent to it since the caller set it to 0. */
  routed = 0;
  readonly view: ReplicaView;

  constructor(engine: Engine, role: ReplicaRole, traits: ReplicaTraits, dispatcher: Dispatcher) {
    this.engine = engine;
    this.role = role;
    this.traits = traits;
    this.view = new ReplicaView(this, dispatcher);
  }

  get inFlight(): number {
    return this.running + this.waiting + this.sent;
  }

  get scraped() {
    const { running, waiting, kvBlocksUsed, sent, queuedTokens, computedTokens, scrapedAt } = this;
    return { running, waiting, kvBlocksUsed, sent, queuedTokens, computedTokens, scrapedAt };
  }

  /** Scrapes the metrics, which the policy sees until the next time. @param isLive Whether that is the next request. */
  scrape(seconds: number, isLive = false): void {
    const { engine } = this;
    this.running = engine.runningCount;
    this.waiting = engine.waitingCount + engine.futureCount;
    this.kvBlocksUsed = isLive ? null : engine.kvBlocksUsed;
    this.sent = 0;
    const computed = engine.promptTokens;
    // Counters may have been cleared since; what was preempted is computed twice, and what was refused never.
    const since = computed < this.computedTokens ? computed : computed - this.computedTokens;
    this.computedTokens = computed;
    this.queuedTokens = this.running + this.waiting === 0 ? 0 : Math.max(0, this.queuedTokens - since);
    this.scrapedAt = seconds;
  }
}

type Prompted = Pick<EngineRequest, 'input' | 'priority' | 'prefix'>;

/** Predicted tokens of an answer, and the mean error of predictions as a share of the true length. */
export interface Predicted {
  readonly tokens: number;
  readonly error: number | null;
}

/** A request as the policy sees it: without the length of its answer. */
export class RequestView {
  readonly #request: Prompted;
  readonly #arrival: number;
  readonly #predicted: Predicted | null;

  /** @param arrival s */
  constructor(request: Prompted, arrival: number, predicted: Predicted | null = null) {
    this.#request = request;
    this.#arrival = arrival;
    this.#predicted = predicted;
  }

  get prompt_tokens(): number {
    return this.#request.input;
  }
  /** Class: 0 (most urgent) .. 7. */
  get priority(): number {
    return this.#request.priority ?? 0;
  }
  /** Time of arrival, s. */
  get arrival(): number {
    return this.#arrival;
  }
  /** Hashes of the whole blocks of the prompt, each with all before it; empty where none are known. */
  get prefix_hashes(): readonly number[] {
    const { prefix, input } = this.#request;
    if (!prefix) return [];
    const { ids, ends, chunkTokens } = prefix;
    return Array.from(ids).filter((_, i) => (ends?.[i] ?? (i + 1) * chunkTokens) <= input);
  }
  /** Predicted tokens of the answer; `null` where nobody predicts it. */
  get predicted_output_tokens(): number | null {
    return this.#predicted?.tokens ?? null;
  }
  /** Mean error of the prediction, as a share of the true length. */
  get predicted_output_error(): number | null {
    return this.#predicted?.error ?? null;
  }
}

/** A replica as the policy sees it: vLLM's metrics at the last scrape, and what the gateway knows itself. */
export class ReplicaView {
  readonly #target: Target;
  readonly #dispatcher: Dispatcher;

  constructor(target: Target, dispatcher: Dispatcher) {
    this.#target = target;
    this.#dispatcher = dispatcher;
  }

  /** Place among the replicas, from 0. */
  get index(): number {
    return this.#target.traits.index;
  }
  /** 0 for the first kind of GPU or profile, 1 for the second. */
  get kind(): number {
    return this.#target.traits.kind;
  }
  get role(): ReplicaRole {
    return this.#target.role;
  }
  get num_requests_running(): number {
    return this.#target.running;
  }
  /** Requests that wait, those on their way to the scheduler included. */
  get num_requests_waiting(): number {
    return this.#target.waiting;
  }
  /** Share of the KV blocks in use, 0 to 1. */
  get kv_cache_usage_perc(): number {
    const { kvBlocksUsed, engine } = this.#target;
    return (kvBlocksUsed ?? engine.kvBlocksUsed) / engine.kvBlocksTotal;
  }
  /** Requests that the gateway has sent since the scrape. */
  get requests_sent(): number {
    return this.#target.sent;
  }
  /** Requests running, waiting, and sent since. */
  get requests_in_flight(): number {
    return this.#target.inFlight;
  }
  /** Age of the scrape, s. */
  get scrape_age(): number {
    return this.#dispatcher.seconds - this.#target.scrapedAt;
  }
  /** Share of the request's prompt that the gateway has sent to the replica before, 0 to 1. */
  get prefix_match(): number {
    return this.prefix_match_tokens / this.#dispatcher.promptTokens;
  }
  /** The same in tokens. */
  get prefix_match_tokens(): number {
    return this.#dispatcher.matchedTokens(this.#target.traits.index);
  }
  /** Tokens of the request's prompt whose KV the replica has, as its KV events tell. */
  get prefix_cached_tokens(): number {
    return this.#dispatcher.heldTokens(this.#target.engine);
  }
  /** Prompt tokens that the gateway has sent to it and that it has not computed. */
  get prompt_tokens_queued(): number {
    return this.#target.queuedTokens;
  }
  /** Tokens that its KV cache has room for. */
  get kv_cache_tokens(): number {
    return this.#target.engine.kvTokens;
  }
  /** Requests in flight on it for one on a replica of the first kind: 1 but where a plan gives the kinds a weight. */
  get weight(): number {
    return this.#target.traits.weight;
  }
  get usd_per_hour(): number {
    return this.#target.traits.usdPerHour;
  }
}

/** The replicas that a request may be sent to, and the gateway's queue. */
export class FleetView {
  readonly #dispatcher: Dispatcher;

  constructor(dispatcher: Dispatcher) {
    this.#dispatcher = dispatcher;
  }

  get replicas(): readonly ReplicaView[] {
    return this.#dispatcher.candidates.views;
  }
  /** Requests that wait for a replica to be ready. */
  get num_requests_held(): number {
    return this.#dispatcher.held;
  }
  /** Seconds of queue: requests that wait over first tokens a second, as of the last scrape. */
  get queue_seconds(): number {
    return this.#dispatcher.queueSeconds;
  }
  /** The next random number in [0, 1) of the run. */
  random(): number {
    return this.#dispatcher.random();
  }
}
