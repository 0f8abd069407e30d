import type { Engine } from '../engine/engine.ts';
import type { EngineRequest } from '../engine/engine-request.ts';

/**
 * Routing of requests to replicas. `round_robin`: in turns. `least_loaded`: to the replica with the fewest
 * requests waiting and running at the moment of arrival. `priority`: as `least_loaded`, with the first replica kept for
 * the most urgent class, which may go anywhere.
 */
export type RouterPolicy = 'round_robin' | 'least_loaded' | 'priority';

/** All of them. */
export const ROUTER_POLICIES: readonly RouterPolicy[] = ['round_robin', 'least_loaded', 'priority'];

/** Spreads requests over engines. */
export class Router {
  private readonly engines: readonly Engine[];
  private readonly policy: RouterPolicy;
  private routed = 0;

  constructor(engines: readonly Engine[], policy: RouterPolicy) {
    this.engines = engines;
    this.policy = policy;
  }

  /** Submits a request to one of the engines. Requests come in order of arrival. */
  submit(request: EngineRequest): void {
    this.choose(request.arrival, request.priority ?? 0).submit(request);
  }

  /** The engine for the next request, of class `priority`, which arrives at `tick`. */
  choose(tick: number, priority: number): Engine {
    const { engines } = this;
    if (engines.length === 1) return engines[0];
    if (this.policy === 'round_robin') return engines[this.routed++ % engines.length];
    // The router sees the replicas as they are when the request arrives.
    for (const engine of engines) engine.runUntil(tick);
    const first = this.policy === 'priority' && priority > 0 ? 1 : 0;
    let best = engines[first];
    for (let i = first + 1; i < engines.length; i++) if (load(engines[i]) < load(best)) best = engines[i];
    return best;
  }
}

function load(engine: Engine): number {
  return engine.waitingCount + engine.runningCount + engine.futureCount;
}
