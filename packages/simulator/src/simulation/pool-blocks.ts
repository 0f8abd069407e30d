import type { EngineProfile, WeightPrecision } from '../profiles/engine-profile.ts';
import { kvPoolBlocks } from '../profiles/kv-pool.ts';
import { SimulatorError } from '../simulator-error.ts';

/**
 * KV blocks of a pool that takes `fraction` of the memory left to it.
 * @throws SimulatorError when the fraction is none, or leaves not one block.
 */
export function poolBlocks(
  profile: EngineProfile,
  weights: WeightPrecision,
  speculationDepth: number,
  fraction: number,
): number {
  if (!(fraction > 0 && fraction <= 1)) {
    throw new SimulatorError(
      'SIMULATION_OPTION',
      `Expected \`kvBudgetFraction\` to be a number above 0 and at most 1, got \`${fraction}\``,
    );
  }
  const blocks = kvPoolBlocks(profile, weights, speculationDepth > 0, fraction);
  if (blocks >= 1) return blocks;
  throw new SimulatorError(
    'SIMULATION_OPTION',
    `Nothing is left for the KV pool: ${weights} weights of \`${profile.name}\` and its activations fill the GPU`,
  );
}
