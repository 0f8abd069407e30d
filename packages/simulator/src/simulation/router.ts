import type { Engine } from '../engine/engine.ts';
import type { EngineRequest } from '../engine/engine-request.ts';
import type { PromptPrefix } from '../engine/prefix-cache.ts';
import { PrefixIndex } from '../fleet/prefix-index.ts';

/**
 * Routing of requests to replicas. `round_robin`: in turns. `least_loaded`: to the replica with the fewest
 * requests waiting and running at the moment of arrival. `priority`: as `least_loaded`, with the first replica kept for
 * the most urgent class, which may go anywhere. `prefix_aware`: by the sum of two scores from 0 to 1, few requests
 * relative to the other replicas and the share of the prompt that the replica was sent before, as the gateway of a
 * `Fleet` with these two weights at 1.
 */
export type RouterPolicy = 'round_robin' | 'least_loaded' | 'priority' | 'prefix_aware';

/** All of them. */
export const ROUTER_POLICIES: readonly RouterPolicy[] = [
  'round_robin',
  'least_loaded',
  'priority',
  'prefix_aware',
];

/** Replicas that a `PrefixIndex` knows. */
const INDEXED = 32;

/** Spreads requests over engines. */
export class Router {
  private readonly engines: readonly Engine[];
  private readonly policy: RouterPolicy;
  /** Requests in flight that count as one, of each engine. */
  private readonly weights: readonly number[];
  /** Of every `INDEXED` engines. */
  private readonly indexes: readonly PrefixIndex[];
  /** Tokens of the prompt that each engine was sent before. */
  private readonly matched: Float64Array;
  private routed = 0;

  constructor(
    engines: readonly Engine[],
    policy: RouterPolicy,
    weights: readonly number[] = engines.map(() => 1),
  ) {
    this.engines = engines;
    this.policy = policy;
    this.weights = weights;
    const indexes = policy === 'prefix_aware' ? Math.ceil(engines.length / INDEXED) : 0;
    this.indexes = Array.from({ length: indexes }, () => new PrefixIndex());
    this.matched = new Float64Array(INDEXED * indexes);
  }

  /** Submits a request to one of the engines. Requests come in order of arrival. */
  submit(request: EngineRequest): void {
    const { arrival, priority = 0, input, prefix } = request;
    if (this.policy !== 'prefix_aware' || this.engines.length === 1 || !prefix) {
      this.choose(arrival, priority).submit(request);
      return;
    }
    const at = this.chooseByPrefix(arrival, prefix, input);
    this.indexes[Math.floor(at / INDEXED)].record(prefix, at % INDEXED);
    this.engines[at].submit(request);
  }

  /** The engine for the next request, of class `priority`, which arrives at `tick`. */
  choose(tick: number, priority: number): Engine {
    const { engines } = this;
    if (engines.length === 1) return engines[0];
    if (this.policy === 'round_robin') return engines[this.routed++ % engines.length];
    // The router sees the replicas as they are when the request arrives.
    for (const engine of engines) engine.runUntil(tick);
    const first = this.policy === 'priority' && priority > 0 ? 1 : 0;
    let best = first;
    for (let i = first + 1; i < engines.length; i++) if (this.load(i) < this.load(best)) best = i;
    return engines[best];
  }

  /** Place of the engine for a prompt with known content. Of equal ones, in turns. */
  private chooseByPrefix(tick: number, prefix: PromptPrefix, input: number): number {
    const { engines, indexes, matched } = this;
    for (const [i, index] of indexes.entries()) {
      index.match(prefix, input, matched.subarray(INDEXED * i, INDEXED * (i + 1)));
    }
    let fewest = Number.POSITIVE_INFINITY;
    let most = 0;
    for (let i = 0; i < engines.length; i++) {
      engines[i].runUntil(tick);
      fewest = Math.min(fewest, this.load(i));
      most = Math.max(most, this.load(i));
    }
    const span = Math.max(1, most - fewest);
    const turn = this.routed++;
    let best = -1;
    let bestScore = Number.NEGATIVE_INFINITY;
    for (let i = 0; i < engines.length; i++) {
      const at = (turn + i) % engines.length;
      const score = (most - this.load(at)) / span + matched[at] / input;
      if (score > bestScore) [best, bestScore] = [at, score];
    }
    return best;
  }

  private load(at: number): number {
    const { waitingCount, runningCount, futureCount } = this.engines[at];
    return (waitingCount + runningCount + futureCount) / this.weights[at];
  }
}
