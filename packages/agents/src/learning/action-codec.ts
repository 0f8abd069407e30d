/** Values of each knob that a learner chooses from. */
export type ActionBins<Action> = { readonly [Knob in keyof Action]: readonly Action[Knob][] };

/** Between the bins of an action and the action: a head for each knob that is free, in the order of the action. */
export class ActionCodec<Action extends object> {
  readonly headSizes: readonly number[];
  /** The values of each head's bins, by its knob. */
  readonly bins: Readonly<Partial<ActionBins<Action>>>;
  readonly #standard: Action;
  readonly #knobs: readonly (keyof Action & string)[];
  readonly #byRatio: ReadonlySet<keyof Action>;

  /**
   * @param standard values of the knobs that are not free
   * @param byRatio knobs whose nearest bin is found by ratio; of texts it is found by their place among the bins
   */
  constructor(
    bins: ActionBins<Action>,
    knobs: readonly (keyof Action & string)[],
    standard: Action,
    byRatio: readonly (keyof Action)[],
  ) {
    this.#standard = standard;
    this.#knobs = knobs;
    this.#byRatio = new Set(byRatio);
    this.bins = Object.fromEntries(knobs.map((knob) => [knob, bins[knob]])) as Partial<ActionBins<Action>>;
    this.headSizes = knobs.map((knob) => bins[knob].length);
  }

  /** The action of a row of bins, one a head. */
  decode(bins: ArrayLike<number>): Action {
    const action = { ...this.#standard };
    for (const [head, knob] of this.#knobs.entries()) action[knob] = this.bins[knob]![bins[head]];
    return action;
  }

  /** The bins nearest to an action. */
  encode(action: Action): number[] {
    return this.#knobs.map((knob) => {
      const place = this.#placeOf(knob, action[knob]);
      const distances = this.bins[knob]!.map((value) => Math.abs(this.#placeOf(knob, value) - place));
      return distances.indexOf(Math.min(...distances));
    });
  }

  #placeOf(knob: keyof Action, value: Action[keyof Action]): number {
    if (typeof value === 'string') return this.bins[knob]!.indexOf(value);
    return this.#byRatio.has(knob) ? Math.log(Number(value)) : Number(value);
  }
}
