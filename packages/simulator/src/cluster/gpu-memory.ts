import type { EngineProfile, WeightPrecision } from '../profiles/engine-profile.ts';
import { kvBlocksGiB, weightVariant } from '../profiles/kv-pool.ts';

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
