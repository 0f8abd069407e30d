import { Engine } from '../engine/engine.ts';
import type { Drafter, EngineConfig, EngineOptions } from '../engine/engine-config.ts';
import type { EngineRequest } from '../engine/engine-log.ts';
import { TICKS_PER_S } from '../engine/ticks.ts';
import type { SchedulingPolicy } from '../engine/waiting-queue.ts';
import { acceptanceTable, engineOptionsOf } from '../profiles/engine-options.ts';
import type { EngineProfile, WeightPrecision } from '../profiles/engine-profile.ts';
import {
  type GpuMemory,
  gpuMemory,
  kvPoolBlocks,
  noKvPool,
  usedGiB,
  weightChangeSeconds,
  weightVariant,
} from '../profiles/kv-pool.ts';
import type { SimulationOptions } from '../simulation/simulation-options.ts';
import { wrongSetting } from '../simulator-error.ts';
import { TransferLink } from './transfer-link.ts';

/** The settings of a cluster that can change while it serves. */
export interface ServingConfig {
  /** Most sequences that run at once on each GPU (vLLM max_num_seqs). */
  readonly maxNumSeqs: number;
  /** Share of the memory left by weights, draft and activations that each GPU's KV pool takes, (0, 1]. */
  readonly kvBudgetFraction: number;
  /** Draft tokens a decode step; 0 is off. */
  readonly speculationDepth: number;
  /** Precision of the weights. A change reloads both GPUs: `weightChangeSeconds` without service, all KV lost. */
  readonly weights: WeightPrecision;
  /** GPU 0 prefills and GPU 1 decodes, instead of both doing both. A change first drains what runs. */
  readonly split: boolean;
  readonly schedulingPolicy: SchedulingPolicy;
}

/** Something that happened to a GPU. */
interface ClusterEvent {
  /** `oom`: the pool and a co-tenant outgrew the GPU; its engine restarts with a pool that fits. */
  readonly kind: 'reload' | 'oom' | 'drain_started' | 'drain_finished' | 'drain_cancelled';
  /** Tick. */
  readonly at: number;
  readonly gpu: number;
}

/** Parts and fixed settings of a cluster. */
export interface ClusterOptions
  extends Pick<EngineOptions, 'maxNumBatchedTokens' | 'prefixCaching' | 'seed'>,
    Pick<SimulationOptions, 'acceptance'> {
  readonly profile: EngineProfile;
  /** GPUs (or tensor-parallel groups). One is never split, and refuses weights that fill it. Default 2. */
  readonly size?: 1 | 2;
  /** See `EngineOptions.drafter`; drafts are then scheduled as before vLLM knew of look-ahead slots. Default: that of the profile. */
  readonly drafter?: Drafter;
}

const NO_ACCEPTANCE: readonly number[] = [];

const PREFILL = 0;
const DECODE = 1;

/**
 * Two GPUs (or tensor-parallel groups) that serve one model behind a round-robin router, or one. Mixed, each serves whole
 * requests. Split, GPU 0 prefills, sends the KV over a link, and GPU 1 decodes: no prompt disturbs a decode, but the
 * partition is fixed. Co-located tenants may take memory on both.
 */
export class Cluster {
  readonly engines: readonly Engine[];
  /** Events since `clearLogs`. */
  readonly events: ClusterEvent[] = [];
  private readonly profile: EngineProfile;
  private readonly size: number;
  private acceptance: string;
  private readonly link: TransferLink;
  private config: ServingConfig;
  private tenantGiB = 0;
  /** Present division of the GPUs; differs from `config.split` while they drain. */
  private arrangedAsSplit: boolean;
  private submitted = 0;
  /** Tick up to which the GPUs were run last. */
  private ranUntil = 0;
  /** Tick at which each GPU is back from its last restart for want of memory. */
  private backAt: readonly number[];

  /** @throws SimulatorError when the configuration does not fit the profile. */
  constructor(config: ServingConfig, options: ClusterOptions) {
    this.profile = options.profile;
    this.size = options.size ?? 2;
    this.acceptance = options.acceptance ?? 'sharegpt';
    this.link = new TransferLink(options.profile);
    this.config = config;
    this.arrangedAsSplit = config.split;
    const engineOptions = {
      ...engineOptionsOf(options.profile, options.drafter === undefined && config.speculationDepth > 0),
      ...(options.drafter !== undefined && { drafter: options.drafter }),
      maxNumBatchedTokens: options.maxNumBatchedTokens,
      prefixCaching: options.prefixCaching,
      seed: options.seed,
    };
    const engineConfig = this.engineConfig(config, this.blocksFor(config), this.acceptance);
    this.engines = Array.from({ length: this.size }, (_, gpu) => {
      return new Engine(engineConfig, {
        ...engineOptions,
        role: config.split && gpu === PREFILL ? 'prefill' : 'mixed',
      });
    });
    this.backAt = this.engines.map(() => 0);
  }

  /** The latest of the GPUs' clocks, ticks. */
  get now(): number {
    return Math.max(...this.engines.map(({ now }) => now));
  }
  /** Requests that have arrived and do not run. */
  get waitingCount(): number {
    return this.sum('waitingCount');
  }
  get runningCount(): number {
    return this.sum('runningCount');
  }
  get kvBlocksUsed(): number {
    return this.sum('kvBlocksUsed');
  }
  get kvBlocksTotal(): number {
    return this.sum('kvBlocksTotal');
  }
  /** Tick at which the next iteration begins; `Infinity` while there is nothing that could be served. */
  get nextIteration(): number {
    const next = Math.min(...this.engines.map(({ nextIteration }) => nextIteration));
    return this.draining && next === Number.POSITIVE_INFINITY ? this.now : next;
  }
  /** Whether the GPUs finish what runs before they change roles. */
  get draining(): boolean {
    return this.arrangedAsSplit !== this.config.split;
  }
  get servingConfig(): ServingConfig {
    return this.config;
  }

  roleOf(gpu: number): 'mixed' | 'prefill' | 'decode' {
    if (!this.arrangedAsSplit) return 'mixed';
    return gpu === PREFILL ? 'prefill' : 'decode';
  }

  /** Present memory use of a GPU. @param gpu 0 or 1 */
  memoryOf(gpu: number): GpuMemory {
    const { weights, speculationDepth } = this.config;
    const blocks = this.engines[gpu].kvBlocksTotal;
    return gpuMemory(this.profile, weights, speculationDepth > 0, blocks, this.tenantGiB);
  }

  /** Adds a request. Requests are submitted in order of arrival. @throws SimulatorError naming the field at fault. */
  submit(request: EngineRequest): void {
    const gpu = this.arrangedAsSplit ? PREFILL : this.submitted % this.size;
    this.submitted++;
    this.engines[gpu].submit(request);
  }

  /**
   * Forgets a request that its client gave up; its KV blocks are free at once.
   * @returns whether there was a request of that id
   */
  abort(id: number): boolean {
    return this.engines.some((engine) => engine.abort(id));
  }

  /** Moves the origin of the clock: every tick is smaller by `ticks` from now on. The logs keep the old origin. */
  shiftClock(ticks: number): void {
    for (const engine of this.engines) engine.shiftClock(ticks);
    this.link.idleFrom -= ticks;
    this.ranUntil -= ticks;
    this.backAt = this.backAt.map((tick) => tick - ticks);
  }

  /**
   * Changes settings from now on. Caps, pool, speculation and policy act at the next iteration; new weights reload the
   * GPUs; a change of `split` drains them first. `tenantGiB` is the memory that tenants take on each GPU from now on;
   * a GPU whose memory no longer suffices goes out of memory. `acceptance` names the acceptance table of the profile
   * that holds from now on, for all that runs.
   * @throws SimulatorError and the like, and changes nothing, when the configuration does not fit the profile.
   */
  configure(config: ServingConfig, tenantGiB = this.tenantGiB, acceptance = this.acceptance): void {
    const blocks = this.blocksFor(config);
    const engineConfig = this.engineConfig(config, blocks, acceptance);
    const { weights } = this.config;
    const reload = config.weights !== weights;
    const wasDraining = this.draining;
    this.config = config;
    this.tenantGiB = tenantGiB;
    this.acceptance = acceptance;
    for (const [gpu, engine] of this.engines.entries()) {
      if (reload) {
        this.log('reload', gpu);
        engine.restart(Math.round(weightChangeSeconds(this.profile, weights, config.weights) * TICKS_PER_S));
      }
      engine.configure(engineConfig);
    }
    if (this.draining !== wasDraining) {
      for (const [gpu, engine] of this.engines.entries()) {
        this.log(this.draining ? 'drain_started' : 'drain_cancelled', gpu);
        engine.setAdmitting(!this.draining || this.roleOf(gpu) === 'decode');
      }
    }
    this.enforceMemory();
  }

  runUntil(limit: number): void {
    this.ranUntil = limit;
    if (this.draining && !this.drain(limit)) return;
    if (this.arrangedAsSplit) {
      this.engines[PREFILL].runUntil(limit);
      this.transfer();
      this.engines[DECODE].runUntil(limit);
    } else {
      for (const engine of this.engines) engine.runUntil(limit);
    }
  }

  /** Forgets what was logged: completions, first tokens and events that a caller has read. */
  clearLogs(): void {
    this.events.length = 0;
    for (const engine of this.engines) engine.clearLogs();
  }

  /** The state, without the logs, to go back to. */
  snapshot() {
    const { config, tenantGiB, acceptance, arrangedAsSplit, submitted, ranUntil, link } = this;
    return {
      ...{ config, tenantGiB, acceptance, arrangedAsSplit, submitted, ranUntil },
      engines: this.engines.map((engine) => engine.snapshot()),
      linkIdleFrom: link.idleFrom,
      backAt: this.backAt,
    };
  }

  /** Goes back to where `snapshot` was taken, with empty logs. */
  restore({ engines, linkIdleFrom, backAt, ...rest }: ReturnType<Cluster['snapshot']>): void {
    for (const [gpu, engine] of this.engines.entries()) engine.restore(engines[gpu]);
    Object.assign(this, rest);
    this.link.idleFrom = linkIdleFrom;
    this.backAt = backAt;
    this.events.length = 0;
  }

  private transfer(): void {
    for (const { request, ready } of this.link.sendFrom(this.engines[PREFILL]))
      this.engines[DECODE].submitTransferred(request, ready);
  }

  /** Runs towards the change of roles. Answers whether the roles have changed; if not, the clock is at `limit`. */
  private drain(limit: number): boolean {
    const [first, second] = this.engines;
    let empty: boolean;
    if (this.arrangedAsSplit) {
      const prefilled = first.drainUntil(limit);
      this.transfer();
      // What is on the link is decoded before the roles change.
      second.runUntilIdle(limit);
      empty = prefilled && second.runningCount + second.waitingCount + second.futureCount === 0;
    } else {
      const drained = [first.drainUntil(limit), second.drainUntil(limit)];
      empty = drained[0] && drained[1];
    }
    if (!empty) {
      for (const engine of this.engines) engine.idleUntil(limit);
      return false;
    }
    const at = this.now;
    const waiting = [...first.withdrawWaiting(), ...second.withdrawWaiting()];
    waiting.sort((a, b) => a.visible - b.visible || a.id - b.id);
    this.arrangedAsSplit = this.config.split;
    first.setRole(this.arrangedAsSplit ? 'prefill' : 'mixed');
    for (const [gpu, engine] of this.engines.entries()) {
      engine.idleUntil(at);
      engine.setAdmitting(true);
      this.log('drain_finished', gpu);
    }
    for (const [i, request] of waiting.entries())
      this.engines[this.arrangedAsSplit ? PREFILL : i % 2].resubmit(request);
    return true;
  }

  /**
   * Restarts an engine whose GPU is over its memory, with the largest pool that fits. One that is down already holds
   * no pool: it comes back with what fits.
   */
  private enforceMemory(): void {
    for (const [gpu, engine] of this.engines.entries()) {
      const memory = this.memoryOf(gpu);
      const over = usedGiB(memory) - memory.limit;
      if (over <= 0) continue;
      const fitting = Math.floor(engine.kvBlocksTotal * (1 - over / memory.kvPool));
      if (this.backAt[gpu] <= this.ranUntil) {
        this.log('oom', gpu);
        engine.restart(this.profile.reloadSeconds * TICKS_PER_S);
        this.backAt = this.backAt.with(gpu, engine.now);
      }
      engine.configure({ ...engine.config, kvBlocks: Math.max(1, fitting) });
    }
  }

  private blocksFor(config: ServingConfig): number {
    const { weights, speculationDepth, kvBudgetFraction } = config;
    const blocks = kvPoolBlocks(this.profile, weights, speculationDepth > 0, kvBudgetFraction);
    if (blocks >= 1 || this.size > 1) return Math.max(1, blocks);
    throw noKvPool(this.profile, weights);
  }

  private sum(of: 'waitingCount' | 'runningCount' | 'kvBlocksUsed' | 'kvBlocksTotal'): number {
    return this.engines.reduce((total, engine) => total + engine[of], 0);
  }

  private engineConfig(config: ServingConfig, kvBlocks: number, acceptance: string): EngineConfig {
    if (config.split && this.size === 1)
      throw wrongSetting('ENGINE_CONFIG', 'split', 'false with a single engine', config.split);
    return {
      law: weightVariant(this.profile, config.weights).law,
      maxNumSeqs: config.maxNumSeqs,
      kvBlocks,
      schedulingPolicy: config.schedulingPolicy,
      speculationDepth: config.speculationDepth,
      speculation: this.profile.speculation,
      survival: config.speculationDepth > 0 ? acceptanceTable(this.profile, acceptance) : NO_ACCEPTANCE,
    };
  }

  private log(kind: ClusterEvent['kind'], gpu: number): void {
    this.events.push({ kind, at: this.engines[gpu].now, gpu });
  }
}
