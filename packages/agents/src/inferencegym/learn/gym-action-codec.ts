import {
  GYM_DEFAULT_ACTION,
  GYM_TASKS,
  type GymAction,
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
