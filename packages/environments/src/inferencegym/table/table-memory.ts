import { type EngineProfile, type WeightPrecision, weightVariant } from '@servegym/simulator';

const GIB = 2 ** 30;
/**
 * Bytes that sampling takes for each position and entry of the vocabulary: logits and probabilities in FP32 and the
 * 64-bit indices of a sort.
 */
const SAMPLER_BYTES_PER_ENTRY = 4 + 4 + 8;
/** Entries of the vocabulary of Llama 3. */
const VOCABULARY = 128_256;
/** Sequences that the pool of `kv_budget` 1 leaves sampling memory for. */
const SEQUENCES_PROVIDED_FOR = 32;
/** Share of the memory that a pool of `kv_budget` 1 leaves free beside that. */
const SLACK = 0.002;

/** Parts of the memory that a configuration may use, GB (10^9 bytes). */
export interface TableMemory {
  readonly kvBlocks: number;
  readonly usedGb: number;
}

/**
 * The KV pool and the memory of a configuration. `kvBudget` is a share of what weights and activations leave of
 * `limitGb`; the draft model and the sampler's buffers, which grow with the batch and the speculation, come on top, so
 * that a large pool beside a large batch does not fit.
 */
export function tableMemory(
  profile: EngineProfile,
  limitGb: number,
  configuration: {
    readonly weights: WeightPrecision;
    readonly batchSize: number;
    readonly kvBudget: number;
    readonly speculationDepth: number;
    /** The pool holds at least this many tokens, whatever its budget. */
    readonly leastTokens: number;
  },
): TableMemory {
  const { weights, batchSize, kvBudget, speculationDepth, leastTokens } = configuration;
  const fixedGb = ((weightVariant(profile, weights).weightGiB + profile.memory.overheadGiB) * GIB) / 1e9;
  const poolGb = (limitGb * (1 - SLACK) - fixedGb - samplerGb(SEQUENCES_PROVIDED_FOR, 0)) * kvBudget;
  const blockBytes = (profile.model.kvBytesPerToken * profile.memory.blockTokens) / profile.gpu.count;
  const leastBlocks = Math.ceil(leastTokens / profile.memory.blockTokens);
  const kvBlocks = Math.max(leastBlocks, Math.floor((poolGb * 1e9) / blockBytes));
  const draftGb =
    speculationDepth > 0 && profile.speculation !== null ? (profile.speculation.draftGiB * GIB) / 1e9 : 0;
  return {
    kvBlocks,
    usedGb: fixedGb + draftGb + (kvBlocks * blockBytes) / 1e9 + samplerGb(batchSize, speculationDepth),
  };
}

function samplerGb(batchSize: number, speculationDepth: number): number {
  return (batchSize * (1 + speculationDepth) * VOCABULARY * SAMPLER_BYTES_PER_ENTRY) / 1e9;
}
