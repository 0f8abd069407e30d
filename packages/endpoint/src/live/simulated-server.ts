import {
  Cluster,
  type ClusterEvent,
  type Engine,
  type EngineProfile,
  type EngineRequest,
  type GpuMemory,
  type ServingConfig,
} from '@servegym/simulator';
import { SingleEngine } from './single-engine.ts';

/** Engines behind the endpoint: one simulated engine, or the pair of `llmserve`. `Cluster` is the second. */
export interface SimulatedServer {
  readonly engines: readonly Engine[];
  readonly servingConfig: ServingConfig;
  /** Events of the engines since it was last emptied. */
  readonly events: ClusterEvent[];
  /** Whether the engines finish what runs before they change roles. */
  readonly draining: boolean;
  /** Tick at which the next iteration begins; `Infinity` while there is nothing that could be served. */
  readonly nextIteration: number;
  submit(request: EngineRequest): void;
  abort(id: number): boolean;
  /** @throws EngineError and the like, and changes nothing, when the configuration does not fit the profile. */
  configure(config: ServingConfig): void;
  runUntil(limit: number): void;
  shiftClock(ticks: number): void;
  roleOf(engine: number): 'mixed' | 'prefill' | 'decode';
  memoryOf(engine: number): GpuMemory;
}

export interface SimulatedServerOptions {
  readonly profile: EngineProfile;
  /** 1, as `simulate` has it, or 2, as `llmserve` has it: behind a round-robin router, with the prefill/decode split. */
  readonly engines: 1 | 2;
  readonly maxNumBatchedTokens: number;
  /** Acceptance table of the profile for this traffic. */
  readonly acceptance: string;
  /** Whether prompts find what is cached of their prefix. One engine only. */
  readonly prefixCaching: boolean;
  /** Seed of the acceptance draws. */
  readonly seed: number;
}

/** @throws EngineError, ProfileVariantError and the like when the configuration does not fit the profile. */
export function createSimulatedServer(
  config: ServingConfig,
  options: SimulatedServerOptions,
): SimulatedServer {
  return options.engines === 1 ? new SingleEngine(config, options) : new Cluster(config, options);
}
