import {
  activeKnobs,
  type KnobMask,
  QUANTIZATION_TIERS,
  SERVE_KNOBS,
  type ServeAction,
  type ServeKnob,
} from '@servegym/environments';

/**
 * The values of each knob that a learner chooses from, about evenly spaced on a logarithmic scale where a knob acts in
 * proportion.
 */
const SERVE_ACTION_BINS = {
  batch_cap: [4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512],
  kv_budget_fraction: [0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.85, 1],
  speculation_depth: [0, 1, 2, 3, 4, 5, 6, 8],
  quantization_tier: QUANTIZATION_TIERS,
  prefill_decode_split: [false, true],
  priority_routing: [false, true],
} as const satisfies { readonly [Knob in ServeKnob]: readonly ServeAction[Knob][] };

/** Places of the bins on the scale that tells which is nearest. */
const PLACES: ReadonlyMap<ServeKnob, readonly number[]> = new Map(
  SERVE_KNOBS.map((knob) => [knob, SERVE_ACTION_BINS[knob].map((value) => placeOf(knob, value))]),
);

/** Between the bins of an action and the action: a head for each active knob of a task, in the order of the action. */
export class ServeActionCodec {
  readonly headSizes: readonly number[];
  /** The values of each head's bins, by its knob. */
  readonly bins: Readonly<Partial<Record<ServeKnob, readonly ServeAction[ServeKnob][]>>>;
  readonly #standard: ServeAction;
  readonly #knobs: readonly ServeKnob[];

  constructor(task: KnobMask) {
    this.#standard = task.defaultAction;
    this.#knobs = activeKnobs(task);
    this.bins = Object.fromEntries(this.#knobs.map((knob) => [knob, SERVE_ACTION_BINS[knob]]));
    this.headSizes = this.#knobs.map((knob) => SERVE_ACTION_BINS[knob].length);
  }

  /** The action of a row of bins, one a head; masked knobs have the task's defaults. */
  decode(bins: ArrayLike<number>): ServeAction {
    const action: Record<ServeKnob, unknown> = { ...this.#standard };
    for (const [head, knob] of this.#knobs.entries()) action[knob] = SERVE_ACTION_BINS[knob][bins[head]];
    return action as ServeAction;
  }

  /** The bins nearest to an action; by ratio for `batch_cap` and `kv_budget_fraction`. */
  encode(action: ServeAction): number[] {
    return this.#knobs.map((knob) => nearest(PLACES.get(knob)!, placeOf(knob, action[knob])));
  }
}

function placeOf(knob: ServeKnob, value: ServeAction[ServeKnob]): number {
  if (knob === 'quantization_tier') return (QUANTIZATION_TIERS as readonly unknown[]).indexOf(value);
  const isByRatio = knob === 'batch_cap' || knob === 'kv_budget_fraction';
  return isByRatio ? Math.log(Number(value)) : Number(value);
}

function nearest(places: readonly number[], place: number): number {
  let best = 0;
  for (let bin = 1; bin < places.length; bin++) {
    if (Math.abs(places[bin] - place) < Math.abs(places[best] - place)) best = bin;
  }
  return best;
}
