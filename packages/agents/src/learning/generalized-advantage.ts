import { RUNNING, TERMINATED } from './learning-environment.ts';

/** Rollouts of several environments; entry (t, e) is at `t * environments + e`. */
export interface RolloutValues {
  readonly environments: number;
  readonly steps: number;
  readonly rewards: Float64Array;
  /** `RUNNING`, `TERMINATED` or `TRUNCATED`, for each action. */
  readonly ends: Uint8Array;
  /** Value of the observation that each action was chosen on. */
  readonly values: Float64Array;
  /** Value of the observation that each action led to; read where the rollout or, by its time limit, the episode ended. */
  readonly nextValues: Float64Array;
}

/**
 * Writes the advantage of each action: sum over k of (gamma lambda)^k delta(t + k) up to the end of the episode or of the
 * rollout, delta(t) = r(t) + gamma V(t + 1) - V(t). An episode that was cut off is bootstrapped like a running one.
 * Schulman et al., "High-Dimensional Continuous Control Using Generalized Advantage Estimation", ICLR 2016; Pardo et
 * al., "Time Limits in Reinforcement Learning", ICML 2018.
 */
export function generalizedAdvantages(
  { environments, steps, rewards, ends, values, nextValues }: RolloutValues,
  gamma: number,
  lambda: number,
  advantages: Float64Array,
): void {
  for (let e = 0; e < environments; e++) {
    let advantage = 0;
    for (let t = steps - 1; t >= 0; t--) {
      const at = t * environments + e;
      const running = ends[at] === RUNNING;
      const next = running && t < steps - 1 ? values[at + environments]! : nextValues[at]!;
      const worthNext = ends[at] === TERMINATED ? 0 : next;
      const delta = rewards[at]! + gamma * worthNext - values[at]!;
      advantage = delta + (running ? gamma * lambda * advantage : 0);
      advantages[at] = advantage;
    }
  }
}
