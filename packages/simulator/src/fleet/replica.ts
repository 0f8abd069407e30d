import { TransferLink } from '../cluster/transfer-link.ts';
import { Engine } from '../engine/engine.ts';
import type { EngineConfig, EngineRole, QueueOrder } from '../engine/engine-config.ts';
import type { Dispatcher } from '../policy/dispatcher.ts';
import { Target } from '../policy/views.ts';
import { engineOptionsOf } from '../profiles/engine-options.ts';
import { kvPoolBlocks, weightVariant } from '../profiles/kv-pool.ts';
import { slowedLaw } from './faults.ts';
import type { FleetPool, FleetSettings } from './fleet-options.ts';

/** `starting`: billed, not serving yet. `draining`: gets no more requests, and stops when it has none left. */
export type ReplicaState = 'starting' | 'ready' | 'draining';

/** One engine of a fleet. */
export class Replica {
  /** Place among the fleet's GPUs, 0..31, until it stops. */
  declare readonly slot: number;
  /** Number among all replicas that the fleet has started. */
  declare readonly ordinal: number;
  declare readonly pool: number;
  declare readonly engine: Engine;
  state: ReplicaState = 'starting';
  /** Tick at which a replica that starts begins to serve. */
  declare readyAt: number;
  /** Tick at which a replica that is taken back is gone. */
  goneAt = Number.POSITIVE_INFINITY;
  /** The role that it has as soon as it has finished what it runs. */
  wants: EngineRole = 'mixed';
  /** Time of its iterations over that of a sound one. */
  slowdown = 1;
  /** What the gateway knows of it. */
  declare readonly target: Target;
  declare readonly link: TransferLink;

  constructor(
    own: Pick<Replica, 'slot' | 'ordinal' | 'pool' | 'readyAt'>,
    pool: FleetPool,
    settings: FleetSettings,
    { dispatcher, ...options }: { seed: number; dispatcher: Dispatcher; order: QueueOrder | undefined },
  ) {
    Object.assign(this, own);
    this.link = new TransferLink(pool.profile);
    this.engine = new Engine(engineConfig(pool, settings), {
      ...engineOptionsOf(pool.profile, false),
      maxNumBatchedTokens: settings.maxNumBatchedTokens,
      prefixCaching: true,
      ...options,
    });
    const { gpu } = pool.profile;
    const traits = { index: own.slot, kind: own.pool, weight: 1, usdPerHour: gpu.count * gpu.usdPerHour };
    this.target = new Target(this.engine, 'both', traits, dispatcher);
  }

  /** Whether the gateway may send it requests. */
  get isRoutable(): boolean {
    return this.state === 'ready' && this.wants === this.engine.role;
  }

  /** Requests that the gateway has sent to it since the fleet's `clearLogs`. */
  get routed(): number {
    return this.target.routed;
  }

  /** Requests that wait or run on it, or are on their way to it. */
  get requests(): number {
    return this.engine.waitingCount + this.engine.runningCount + this.engine.futureCount;
  }

  snapshot() {
    const { slot, ordinal, pool, state, readyAt, goneAt, wants, slowdown, link, engine } = this;
    return {
      ...{ slot, ordinal, pool, state, readyAt, goneAt, wants, slowdown },
      scraped: this.target.scraped,
      linkIdleFrom: link.idleFrom,
      engine: engine.snapshot(),
    };
  }

  /** Goes back to where the snapshot of a replica with the same slot, ordinal and pool was taken. */
  restore({ scraped, linkIdleFrom, engine, ...own }: ReturnType<Replica['snapshot']>): void {
    Object.assign(this, own);
    Object.assign(this.target, scraped);
    this.link.idleFrom = linkIdleFrom;
    this.engine.restore(engine);
  }
}

/** The configuration of a replica's engine under a fleet's settings. */
export function engineConfig(pool: FleetPool, settings: FleetSettings, slowdown = 1): EngineConfig {
  const { profile, weights = 'FP16' } = pool;
  return {
    law: slowedLaw(weightVariant(profile, weights).law, slowdown),
    maxNumSeqs: settings.maxNumSeqs,
    maxNumBatchedTokens: settings.maxNumBatchedTokens,
    kvBlocks: Math.max(1, kvPoolBlocks(profile, weights, false, 1)),
    schedulingPolicy: 'priority',
    speculationDepth: 0,
    speculation: null,
    survival: [],
  };
}
