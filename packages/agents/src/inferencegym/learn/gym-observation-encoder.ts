import { EPISODE_STEPS, type GymAction, type GymObservation } from '@servegym/environments';

/** Numbers that `encodeGymObservation` writes. */
export const GYM_OBSERVATION_SIZE = 20;

/**
 * Writes what a network sees of a step, as numbers of about the same size: the observation, heavy-tailed amounts by their
 * logarithm, and the configuration in force, without which the effect of a change cannot be told.
 */
export function encodeGymObservation(
  observation: GymObservation,
  inForce: GymAction,
  features: Float32Array,
): void {
  let at = 0;
  const put = (value: number) => {
    features[at++] = value;
  };
  put(Math.log1p(observation.queue_depth));
  put(Math.log(observation.mean_prompt_len));
  put(Math.log1p(observation.arrival_rate));
  put(observation.kv_cache_occupancy);
  put(Math.log1p(observation.ttft_p50));
  put(Math.log1p(observation.tpot_p50));
  put(observation.slo_violation_rate);
  put(observation.gpu_memory_used_gb / 10);
  put(observation.spec_accept_rate);
  for (const share of observation.priority_distribution) put(share);
  put(observation.timestep / EPISODE_STEPS);
  put(observation.cost_so_far / (1 + observation.timestep));

  put(Math.log2(inForce.batch_size));
  put(inForce.kv_budget);
  put(inForce.spec_length / 4);
  put(inForce.prefill_disagg ? 1 : 0);
  put(inForce.quant_tier === 1 ? 1 : 0);
  put(inForce.quant_tier === 2 ? 1 : 0);
}
