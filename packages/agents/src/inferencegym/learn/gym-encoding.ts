import {
  EPISODE_STEPS,
  GYM_DEFAULT_ACTION,
  GYM_TASKS,
  type GymAction,
  type GymObservation,
  type GymTaskId,
  SPEC_LENGTHS,
} from '@servegym/environments';
import { type ActionBins, ActionCodec } from '../../learning/action-codec.ts';

/**
 * The values of each knob that a learner chooses from, about evenly spaced on a logarithmic scale where a knob acts in
 * proportion.
 */
export const GYM_ACTION_BINS = {
  kv_budget: [0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1],
  spec_length: SPEC_LENGTHS,
  batch_size: [4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512],
  prefill_disagg: [false, true],
  quant_tier: [0, 1, 2],
} as const satisfies ActionBins<GymAction>;

/** A head for each knob that is active in a task. */
export class GymActionCodec extends ActionCodec<GymAction> {
  constructor(taskId: GymTaskId) {
    super(GYM_ACTION_BINS, GYM_TASKS[taskId].activeKnobs, GYM_DEFAULT_ACTION, ['batch_size', 'kv_budget']);
  }
}

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
