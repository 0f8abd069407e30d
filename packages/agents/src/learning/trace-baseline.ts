/** Where each action of a rollout was taken; entry (t, e) is at `t * environments + e`. */
export interface RolloutPlaces {
  readonly environments: number;
  readonly steps: number;
  /** Seed of the episode's trace. */
  readonly seeds: Float64Array;
  /** Windows played before the action. */
  readonly stepIndices: Int32Array;
}

/**
 * Takes out of the advantages what the trace explains: neighbouring environments form groups of `groupSize` that play the
 * same traces, and from each advantage the mean over the group's others at the same window is subtracted. Whatever the
 * traffic does to everybody cancels, and what the actions did remains. The others' actions do not depend on one's own, so
 * the policy gradient stays unbiased. Mao et al., "Variance Reduction for Reinforcement Learning in Input-Driven
 * Environments", ICLR 2019.
 */
export function subtractTraceBaseline(
  { environments, steps, seeds, stepIndices }: RolloutPlaces,
  groupSize: number,
  advantages: Float64Array,
): void {
  const before = new Float64Array(groupSize);
  for (let t = 0; t < steps; t++) {
    for (let group = 0; group < environments; group += groupSize) {
      const first = t * environments + group;
      for (let i = 0; i < groupSize; i++) before[i] = advantages[first + i]!;
      for (let i = 0; i < groupSize; i++) {
        let sum = 0;
        let others = 0;
        for (let j = 0; j < groupSize; j++) {
          const same =
            seeds[first + j] === seeds[first + i] && stepIndices[first + j] === stepIndices[first + i];
          if (j === i || !same) continue;
          sum += before[j]!;
          others++;
        }
        if (others > 0) advantages[first + i] = before[i]! - sum / others;
      }
    }
  }
}
