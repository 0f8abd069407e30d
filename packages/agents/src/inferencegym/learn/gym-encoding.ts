import {
  EPISODE_STEPS,
  GYM_DEFAULT_ACTION,
  GYM_TASKS,
  type GymAction,
  type GymObservation,
  type GymTaskId,
  type Knob,
  SPEC_LENGTHS,
} from '@servegym/environments';

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
} as const satisfies { readonly [K in Knob]: readonly GymAction[K][] };

/** Between the bins of an action and the action: a head for each knob that is active in a task. */
export class GymActionCodec {
  readonly headSizes: readonly number[];
  readonly #knobs: readonly Knob[];

  constructor(taskId: GymTaskId) {
    this.#knobs = GYM_TASKS[taskId].activeKnobs;
    this.headSizes = this.#knobs.map((knob) => GYM_ACTION_BINS[knob].length);
  }

  /** The action of a row of bins; knobs that are not active have their defaults. */
  decode(bins: ArrayLike<number>): GymAction {
    const action: Record<string, unknown> = { ...GYM_DEFAULT_ACTION };
    for (const [head, knob] of this.#knobs.entries()) action[knob] = GYM_ACTION_BINS[knob][bins[head]];
    return action as GymAction;
  }

  /** The bins nearest to an action; by ratio for `batch_size` and `kv_budget`. */
  encode(action: GymAction): number[] {
    return this.#knobs.map((knob) => {
      const scale = knob === 'batch_size' || knob === 'kv_budget' ? Math.log : Number;
      return nearest(
        GYM_ACTION_BINS[knob].map((value) => scale(Number(value))),
        scale(Number(action[knob])),
      );
    });
  }
}

function nearest(bins: readonly number[], value: number): number {
  let best = 0;
  for (let bin = 1; bin < bins.length; bin++) {
    if (Math.abs(bins[bin] - value) < Math.abs(bins[best] - value)) best = bin;
  }
  return best;
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
