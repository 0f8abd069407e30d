import { tokensIn } from '../engine/grouped-block-pool.ts';
import { SimulatorError } from '../simulator-error.ts';
import type { EngineProfile, WeightPrecision, WeightVariant } from './engine-profile.ts';

const GIB = 2 ** 30;

/** The variant of a profile for a precision. @throws SimulatorError when the profile has no coefficients for it. */
export function weightVariant(profile: EngineProfile, precision: WeightPrecision): WeightVariant {
  const variant = profile.weights[precision];
  if (variant !== undefined) return variant;
  const known = Object.keys(profile.weights).join(', ');
  throw new SimulatorError(
    'PROFILE_VARIANT',
    `Profile \`${profile.name}\` has no coefficients for ${precision} weights; it has ${known}`,
  );
}

/** Memory that weights, draft and activations leave to the KV pool, GiB a GPU. Negative when they do not fit. */
export function kvMemoryGiB(
  profile: EngineProfile,
  precision: WeightPrecision,
  speculation: boolean,
): number {
  const { memoryGiB } = profile.gpu;
  const draft = speculation && profile.speculation !== null ? profile.speculation.draftGiB : 0;
  const weights = weightVariant(profile, precision).weightGiB;
  return memoryGiB * profile.memory.utilization - weights - draft - profile.memory.overheadGiB;
}

/** The groups of layers that an engine keeps KV blocks for; `undefined` for one that has the same blocks for all. vLLM alone has groups. */
export function kvGroupsOf({ engine, model }: EngineProfile): EngineProfile['model']['kvGroups'] {
  return engine.name === 'vLLM' ? model.kvGroups : undefined;
}

/** Bytes of a KV block on all GPUs of an engine. */
export function kvBlockBytes(profile: EngineProfile): number {
  const { bytesPerToken } = kvGroupsOf(profile) ?? { bytesPerToken: profile.model.kvBytesPerToken };
  return bytesPerToken * profile.memory.blockTokens;
}

/** Tokens of long sequences that `blocks` KV blocks hold. */
export function kvTokens(profile: EngineProfile, blocks: number): number {
  return tokensIn(blocks, profile.memory.blockTokens, kvGroupsOf(profile)?.attention ?? [{}]);
}

/** GiB a GPU that `blocks` KV blocks take. */
export function kvBlocksGiB(profile: EngineProfile, blocks: number): number {
  return (blocks * kvBlockBytes(profile)) / profile.gpu.count / GIB;
}

/** KV blocks of a pool that takes `fraction` of the memory left to it. May be 0 or less when nothing is left. */
export function kvPoolBlocks(
  profile: EngineProfile,
  precision: WeightPrecision,
  speculation: boolean,
  fraction: number,
): number {
  const bytes = kvMemoryGiB(profile, precision, speculation) * fraction * GIB * profile.gpu.count;
  return Math.floor(bytes / kvBlockBytes(profile));
}

/** The error of an engine that has no KV pool. */
export function noKvPool(profile: EngineProfile, precision: WeightPrecision): SimulatorError {
  const full = `${precision} weights of \`${profile.name}\` and its activations fill the GPU`;
  return new SimulatorError('SIMULATION_OPTION', `Nothing is left for the KV pool: ${full}`);
}

/**
 * Seconds without service, and without the KV cache, of a change of precision: the old weights leave each GPU and the
 * new ones enter over the host link. A cold start where no checkpoints wait in host memory.
 */
export function weightChangeSeconds(
  profile: EngineProfile,
  from: WeightPrecision,
  to: WeightPrecision,
): number {
  const { hostCheckpoints, reloadSeconds } = profile;
  if (hostCheckpoints === undefined) return reloadSeconds;
  const gib = weightVariant(profile, from).weightGiB + weightVariant(profile, to).weightGiB;
  return hostCheckpoints.wakeSeconds + (gib * GIB) / (hostCheckpoints.linkGBps * 1e9);
}

/** Memory use of one GPU, GiB. */
export interface GpuMemory {
  readonly weights: number;
  readonly draft: number;
  /** Activations, CUDA graphs and fragmentation. */
  readonly overhead: number;
  readonly kvPool: number;
  /** Taken by co-located tenants. */
  readonly tenant: number;
  /** The GPU's capacity. */
  readonly limit: number;
}

/** The shares of a GPU with so many KV blocks, and tenants that hold `tenantGiB`. */
export function gpuMemory(
  profile: EngineProfile,
  precision: WeightPrecision,
  speculation: boolean,
  kvBlocks: number,
  tenantGiB: number,
): GpuMemory {
  return {
    weights: weightVariant(profile, precision).weightGiB,
    draft: speculation && profile.speculation !== null ? profile.speculation.draftGiB : 0,
    overhead: profile.memory.overheadGiB,
    kvPool: kvBlocksGiB(profile, kvBlocks),
    tenant: tenantGiB,
    limit: profile.gpu.memoryGiB,
  };
}

/** All that is held, GiB. It may exceed `limit`, and then the GPU is out of memory. */
export function usedGiB(memory: GpuMemory): number {
  return memory.weights + memory.draft + memory.overhead + memory.kvPool + memory.tenant;
}
