import { RandomStream } from '@servegym/simulator';
import { mean } from '@servegym/simulator/statistics';
import { trainingTraces } from './learning-environment.ts';

/** A point of the search: a bin for each categorical coordinate, a number for each continuous one. */
export interface SearchPoint {
  readonly bins: readonly number[];
  readonly numbers: readonly number[];
}

/** Start of the search, and its sizes. */
interface CrossEntropyOptions {
  readonly seed: number;
  /** Probability of each bin of each categorical coordinate, to begin with. */
  readonly bins: readonly (readonly number[])[];
  /** Mean and standard deviation of each continuous coordinate, to begin with. */
  readonly numbers: readonly { readonly mean: number; readonly deviation: number }[];
  /** Points of a generation, and how many of its best the next one is drawn after. */
  readonly population: number;
  readonly elite: number;
  /** Share of the old distribution that stays: keeps the search from settling too soon. */
  readonly smoothing: number;
}

/** Progress of a search. */
export interface SearchGeneration {
  /** Windows played so far. */
  readonly steps: number;
  /** Of an episode, over the points of the generation and over its best. */
  readonly meanReturn: number;
  readonly eliteReturn: number;
}

/** Probability of the first bin of a coordinate to begin with, beyond its even share. */
const FIRST_SHARE = 0.6;

/** Probabilities of so many bins around one of them, to begin with. */
export function probabilitiesAround(first: number, size: number): number[] {
  return Array.from(
    { length: size },
    (_, bin) => (1 - FIRST_SHARE) / size + (bin === first ? FIRST_SHARE : 0),
  );
}

/** No bin becomes less likely than this, so that none is lost for good. */
const LEAST_PROBABILITY = 0.01;

/**
 * The cross-entropy method: draws points, and moves the distribution towards the best of them, coordinate by coordinate.
 * De Boer et al., "A Tutorial on the Cross-Entropy Method", Annals of Operations Research, 2005.
 */
export class CrossEntropySearch {
  readonly #options: CrossEntropyOptions;
  readonly #random: RandomStream;
  #bins: number[][];
  #numbers: { mean: number; deviation: number }[];

  constructor(options: CrossEntropyOptions) {
    this.#options = options;
    this.#random = new RandomStream(options.seed, 'cross-entropy search');
    this.#bins = options.bins.map((probabilities) => [...probabilities]);
    this.#numbers = options.numbers.map((number) => ({ ...number }));
  }

  /** The points of the next generation: the likeliest one, and others drawn. */
  draw(): SearchPoint[] {
    return [
      this.likeliest(),
      ...Array.from({ length: this.#options.population - 1 }, () => ({
        bins: this.#bins.map((probabilities) => this.#random.choose(probabilities)),
        numbers: this.#numbers.map(({ mean, deviation }) => mean + deviation * this.#random.normal()),
      })),
    ];
  }

  /** The middle of the distribution. */
  likeliest(): SearchPoint {
    return {
      bins: this.#bins.map((probabilities) => probabilities.indexOf(Math.max(...probabilities))),
      numbers: this.#numbers.map(({ mean }) => mean),
    };
  }

  /** Moves towards the points with the highest scores. */
  learn(points: readonly SearchPoint[], scores: readonly number[]): void {
    const { elite, smoothing } = this.#options;
    const best = points
      .map((point, i) => ({ point, score: scores[i] }))
      .sort((a, b) => b.score - a.score)
      .slice(0, elite)
      .map(({ point }) => point);
    this.#bins = this.#bins.map((old, coordinate) => {
      const moved = old.map((probability, bin) => {
        const share = best.filter(({ bins }) => bins[coordinate] === bin).length / best.length;
        return Math.max(LEAST_PROBABILITY, smoothing * probability + (1 - smoothing) * share);
      });
      const total = moved.reduce((sum, probability) => sum + probability, 0);
      return moved.map((probability) => probability / total);
    });
    this.#numbers = this.#numbers.map((old, coordinate) => {
      const values = best.map(({ numbers }) => numbers[coordinate]);
      const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
      const variance = values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / values.length;
      return {
        mean: smoothing * old.mean + (1 - smoothing) * mean,
        deviation: smoothing * old.deviation + (1 - smoothing) * Math.sqrt(variance),
      };
    });
  }
}

/** A search on the training split. */
export interface SearchRun {
  /** Windows to play; rounded up to whole generations. */
  readonly steps: number;
  readonly seed: number;
  /** Ends the search after the generation at hand. */
  readonly signal?: AbortSignal | undefined;
  readonly onGeneration?: ((generation: SearchGeneration) => void) | undefined;
}

/** A search, and what its points play. */
interface SearchedPoints extends Omit<CrossEntropyOptions, 'seed'> {
  /** Traces that all points of a generation play; every generation plays others. */
  readonly traces: number;
  /** Windows of a trace. */
  readonly windows: number;
  /** The mean return of each point, in their order. */
  play(points: readonly SearchPoint[], traces: readonly number[]): Promise<readonly number[]>;
}

/** The point that the search comes to, and the windows that were played. */
export async function searchPoints(
  { traces, windows, play, ...options }: SearchedPoints,
  { steps, seed, signal, onGeneration }: SearchRun,
): Promise<{ readonly point: SearchPoint; readonly steps: number }> {
  const search = new CrossEntropySearch({ ...options, seed });
  let played = 0;
  for (let generation = 0; played < steps && !signal?.aborted; generation++) {
    const points = search.draw();
    const returns = await play(points, trainingTraces(seed, traces, generation * traces));
    search.learn(points, returns);
    played += options.population * traces * windows;
    onGeneration?.({
      steps: played,
      meanReturn: mean(returns),
      eliteReturn: mean([...returns].sort((a, b) => b - a).slice(0, options.elite)),
    });
  }
  return { point: search.likeliest(), steps: played };
}
