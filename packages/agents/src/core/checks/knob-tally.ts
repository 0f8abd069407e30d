import type { CheckResult } from './check-result.ts';

/** Rewards closer than this are equal. */
const EQUAL = 1e-6;
/** A bin that is best in this share of the states dominates the others. */
const DOMINATES = 0.97;

/** Values of a knob that are held against each other, in named bins: each value, or each third of the range. */
export interface KnobValues<Action> {
  readonly knob: keyof Action & string;
  readonly bins: readonly { readonly name: string; readonly values: readonly Action[keyof Action][] }[];
}

/** In how many states each value of a knob is best. */
export class KnobTally<Action> {
  states = 0;
  readonly #knobs: readonly KnobValues<Action>[];
  readonly #wins: ReadonlyMap<string, Map<string, number>>;
  /** States in which a knob makes a difference. */
  readonly #acting = new Map<string, number>();

  constructor(knobs: readonly KnobValues<Action>[]) {
    this.#knobs = knobs;
    this.#wins = new Map(knobs.map(({ knob, bins }) => [knob, new Map(bins.map(({ name }) => [name, 0]))]));
  }

  /** Adds a state, in which a value of a knob is worth so much. */
  add(worth: (knob: keyof Action & string, value: Action[keyof Action]) => number): void {
    this.states++;
    for (const { knob, bins } of this.#knobs) {
      const best = bins.map(({ values }) => Math.max(...values.map((value) => worth(knob, value))));
      const most = Math.max(...best);
      if (most - Math.min(...best) < EQUAL) continue;
      this.#acting.set(knob, this.#actingOf(knob) + 1);
      const wins = this.#wins.get(knob)!;
      for (const [b, { name }] of bins.entries()) {
        if (best[b] >= most - EQUAL) wins.set(name, wins.get(name)! + 1);
      }
    }
  }

  /** @param least knobs that must be live: of which no one bin is best nearly everywhere */
  result(
    least: number,
    difficulty: string,
    otherwise: { readonly outcome: 'fail' | 'note'; readonly advice: string },
  ): CheckResult {
    const acting = this.#knobs.filter(({ knob }) => this.#actingOf(knob) > 0);
    const dominated = acting
      .filter(({ knob }) => Math.max(...this.#wins.get(knob)!.values()) >= DOMINATES * this.#actingOf(knob))
      .map(({ knob }) => knob);
    const live = acting.length - dominated.length;
    const isGame = live >= least;
    return {
      id: 'knob_dominance',
      group: 'game',
      title: `of at least ${least} knobs no one value is always best, as ${difficulty} tasks ask for`,
      outcome: isGame ? 'pass' : otherwise.outcome,
      figures: {
        states: this.states,
        live_knobs: live,
        dominated: dominated.join(', ') || 'none',
        ...Object.fromEntries(this.#knobs.map(({ knob }) => [knob, this.#shares(knob)])),
      },
      ...(!isGame && { advice: otherwise.advice }),
    };
  }

  #actingOf(knob: string): number {
    return this.#acting.get(knob) ?? 0;
  }

  #shares(knob: string): string {
    const states = this.#actingOf(knob);
    if (states === 0) return 'does nothing';
    return [...this.#wins.get(knob)!]
      .map(([name, count]) => `${name} ${Math.round((100 * count) / states)} %`)
      .join(', ');
  }
}
