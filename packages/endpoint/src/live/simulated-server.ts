import {
  acceptanceTable,
  Cluster,
  Engine,
  type EngineProfile,
  type EngineRequest,
  engineOptionsOf,
  type GpuMemory,
  kvBlocksGiB,
  kvPoolBlocks,
  type ServingConfig,
  SimulatorError,
  TICKS_PER_S,
  weightChangeSeconds,
  weightVariant,
} from '@servegym/simulator';

/** Engines behind the endpoint: one simulated engine, or the pair of `llmserve`, which `Cluster` is. */
export interface SimulatedServer
  extends Pick<
    Cluster,
    | 'servingConfig'
    | 'events'
    | 'draining'
    | 'nextIteration'
    | 'submit'
    | 'abort'
    | 'runUntil'
    | 'shiftClock'
    | 'roleOf'
    | 'memoryOf'
  > {
  readonly engines: readonly Engine[];
  /** @throws {SimulatorError}, and changes nothing, when the configuration does not fit the profile. */
  configure(config: ServingConfig): void;
}

export interface SimulatedServerOptions {
  readonly profile: EngineProfile;
  /** 1, as `simulate` has it, or 2, as `llmserve` has it: behind a round-robin router, with the prefill/decode split. */
  readonly engines: 1 | 2;
  readonly maxNumBatchedTokens: number;
  /** Acceptance table of the profile for this traffic. */
  readonly acceptance: string;
  /** Whether prompts find what is cached of their prefix; two engines cache nothing. */
  readonly prefixCaching: boolean;
  /** Seed of the acceptance draws, and of an endpoint's replies. */
  readonly seed: number;
}

/** @throws {SimulatorError} when the configuration does not fit the profile. */
export function createSimulatedServer(
  config: ServingConfig,
  options: SimulatedServerOptions,
): SimulatedServer {
  return options.engines === 1 ? new SingleEngine(config, options) : new Cluster(config, options);
}

/** One engine with the settings of a cluster, as `servegym simulate` has it. */
class SingleEngine implements SimulatedServer {
  readonly engines: readonly [Engine];
  readonly events: Cluster['events'] = [];
  readonly draining = false;
  readonly #profile: EngineProfile;
  readonly #acceptance: string;
  #config: ServingConfig;

  constructor(config: ServingConfig, options: SimulatedServerOptions) {
    this.#profile = options.profile;
    this.#acceptance = options.acceptance;
    this.#config = config;
    this.engines = [
      new Engine(this.#engineConfig(config), {
        ...engineOptionsOf(options.profile, config.speculationDepth > 0),
        maxNumBatchedTokens: options.maxNumBatchedTokens,
        prefixCaching: options.prefixCaching,
        seed: options.seed,
      }),
    ];
  }

  get servingConfig(): ServingConfig {
    return this.#config;
  }
  get nextIteration(): number {
    return this.engines[0].nextIteration;
  }

  submit(request: EngineRequest): void {
    this.engines[0].submit(request);
  }

  abort(id: number): boolean {
    return this.engines[0].abort(id);
  }

  configure(config: ServingConfig): void {
    const engineConfig = this.#engineConfig(config);
    const [engine] = this.engines;
    if (config.weights !== this.#config.weights) {
      this.events.push({ kind: 'reload', at: engine.now, gpu: 0 });
      const seconds = weightChangeSeconds(this.#profile, this.#config.weights, config.weights);
      engine.restart(Math.round(seconds * TICKS_PER_S));
    }
    engine.configure(engineConfig);
    this.#config = config;
  }

  runUntil(limit: number): void {
    this.engines[0].runUntil(limit);
  }

  shiftClock(ticks: number): void {
    this.engines[0].shiftClock(ticks);
  }

  roleOf(): 'mixed' {
    return 'mixed';
  }

  memoryOf(): GpuMemory {
    const { gpu, memory, speculation } = this.#profile;
    const { weights, speculationDepth } = this.#config;
    return {
      weights: weightVariant(this.#profile, weights).weightGiB,
      draft: speculationDepth > 0 && speculation !== null ? speculation.draftGiB : 0,
      overhead: memory.overheadGiB,
      kvPool: kvBlocksGiB(this.#profile, this.engines[0].kvBlocksTotal),
      tenant: 0,
      limit: gpu.memoryGiB,
    };
  }

  #engineConfig(config: ServingConfig): Engine['config'] {
    if (config.split)
      throw new SimulatorError(
        'ENGINE_CONFIG',
        'Expected `split` to be false with a single engine, got true',
      );
    const { weights, speculationDepth, kvBudgetFraction } = config;
    const kvBlocks = kvPoolBlocks(this.#profile, weights, speculationDepth > 0, kvBudgetFraction);
    if (kvBlocks < 1) {
      throw new SimulatorError(
        'SIMULATION_OPTION',
        `Nothing is left for the KV pool: ${weights} weights of \`${this.#profile.name}\` and its activations fill the GPU`,
      );
    }
    return {
      law: weightVariant(this.#profile, weights).law,
      maxNumSeqs: config.maxNumSeqs,
      kvBlocks,
      schedulingPolicy: config.schedulingPolicy,
      speculationDepth,
      speculation: this.#profile.speculation,
      survival: speculationDepth > 0 ? acceptanceTable(this.#profile, this.#acceptance) : [],
    };
  }
}
