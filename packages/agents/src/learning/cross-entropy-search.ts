import { type FleetController, type FleetTaskId, fleet } from '@servegym/environments';
import { portableMath, RandomStream } from '@servegym/simulator';
import { mean } from '@servegym/simulator/statistics';
import {
  createFleetPolicy,
  DEMAND_PARAMETERS,
  type DemandParameter,
  type DemandParameters,
  demandPolicy,
} from '../policies/fleet-policies.ts';
import { ANY_SERVER } from './learners.ts';
import { trainingTraces } from './learning-environment.ts';

/** A point of the search: a number for each coordinate. */
export type SearchPoint = readonly number[];

/** Start of the search, and its sizes. */
interface CrossEntropyOptions {
  readonly seed: number;
  /** Mean and standard deviation of each coordinate, to begin with. */
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
  readonly eliteReturn?: number;
}

/**
 * The cross-entropy method: draws points, and moves the distribution towards the best of them, coordinate by coordinate.
 * De Boer et al., "A Tutorial on the Cross-Entropy Method", Annals of Operations Research, 2005.
 */
export class CrossEntropySearch {
  readonly #options: CrossEntropyOptions;
  readonly #random: RandomStream;
  #numbers: { mean: number; deviation: number }[];

  constructor(options: CrossEntropyOptions) {
    this.#options = options;
    this.#random = new RandomStream(options.seed, 'cross-entropy search');
    this.#numbers = options.numbers.map((number) => ({ ...number }));
  }

  /** The points of the next generation: the likeliest one, and others drawn. */
  draw(): SearchPoint[] {
    return [
      this.likeliest(),
      ...Array.from({ length: this.#options.population - 1 }, () =>
        this.#numbers.map(({ mean, deviation }) => mean + deviation * this.#random.normal()),
      ),
    ];
  }

  /** The middle of the distribution. */
  likeliest(): SearchPoint {
    return this.#numbers.map(({ mean }) => mean);
  }

  /** Moves towards the points with the highest scores. */
  learn(points: readonly SearchPoint[], scores: readonly number[]): void {
    const { elite, smoothing } = this.#options;
    const best = points
      .map((point, i) => ({ point, score: scores[i] }))
      .sort((a, b) => b.score - a.score)
      .slice(0, elite)
      .map(({ point }) => point);
    this.#numbers = this.#numbers.map((old, coordinate) => {
      const values = best.map((point) => point[coordinate]!);
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

/** Policies of a generation, how many of the best the next one goes by, and what each plays. */
const DEMAND_SEARCH = { population: 16, elite: 4, smoothing: 0.4, traces: 6, windows: 60 };
/** Least that an episode of a drawn fleet counts, a window: one fleet must not decide what is learned. */
const LEAST_SHARE = -1;
/** Autoscalers of which the one that earns most on an episode says how many requests are to be in time. */
const RIVALS = ['hpa', 'slo', 'p-pas'];
/**
 * Price of the share of the requests that are later than under that autoscaler, in rewards a window: a Lagrange multiplier,
 * so that nothing is earned by serving late. It begins with `first`, changes by `rate` times the share that the best
 * policies of a generation miss beyond `allowed`, and stays below `most`. Choices.
 */
const ATTAINMENT_PRICE = { first: 10, rate: 20, allowed: 0.003, most: 40 };

/**
 * Searches the parameters of a `demandPolicy` with the cross-entropy method on the training split: of a task, or of any
 * fleet. All policies of a generation play the same episodes, and every generation others. In every other episode they are
 * told the share of the requests that the best rival has in time, as the one required.
 */
export async function searchDemand(
  taskId: FleetTaskId | typeof ANY_SERVER,
  { steps, seed, signal, onGeneration }: SearchRun,
): Promise<{ readonly parameters: DemandParameters; readonly steps: number }> {
  const { population, elite, traces, windows } = DEMAND_SEARCH;
  const { first, rate, allowed, most } = ATTAINMENT_PRICE;
  const search = new CrossEntropySearch({ ...DEMAND_SEARCH, numbers: COORDINATES, seed });
  let price = first;
  let played = 0;
  for (let generation = 0; played < steps && !signal?.aborted; generation++) {
    const points = search.draw();
    const sums = points.map(() => ({ earned: 0, missed: 0 }));
    for (const [at, trace] of trainingTraces(seed, traces, generation * traces).entries()) {
      const own = () => ({ ...fleet.tasks.shipped[taskId as FleetTaskId], windows });
      const task = taskId === ANY_SERVER ? fleet.drawTrainingTask(trace, windows) : own();
      const requests = fleet.drawRequests(task, trace);
      const totalsOf = (controller: FleetController) =>
        fleet.anchors.controlledTotals(task, trace, requests, controller);
      const rivals = RIVALS.map((name) => totalsOf(createFleetPolicy(name) as FleetController));
      const inTime = attainment(rivals.reduce((a, b) => (b.reward > a.reward ? b : a)));
      const sloAttainment = at % 2 === 0 ? inTime : undefined;
      for (const [i, point] of points.entries()) {
        const totals = totalsOf(demandPolicy({ ...parametersOf(point), sloAttainment }));
        sums[i]!.earned += Math.max(LEAST_SHARE * windows, totals.reward) / traces;
        sums[i]!.missed += Math.max(0, inTime - attainment(totals)) / traces;
      }
    }
    const scored = sums.map(({ earned, missed }) => ({ score: earned - price * windows * missed, missed }));
    const scores = scored.map(({ score }) => score);
    search.learn(points, scores);
    const best = scored.toSorted((a, b) => b.score - a.score).slice(0, elite);
    price = Math.max(0, Math.min(most, price + rate * (mean(best.map(({ missed }) => missed)) - allowed)));
    played += population * traces * windows;
    const eliteReturn = mean(best.map(({ score }) => score));
    onGeneration?.({ steps: played, meanReturn: mean(scores), eliteReturn });
  }
  return { parameters: parametersOf(search.likeliest()), steps: played };
}

const attainment = ({ attained, requests }: { readonly attained: number; readonly requests: number }) =>
  requests === 0 ? 1 : attained / requests;

/** A coordinate of the search for each parameter: those of a ratio by their logarithm. */
const COORDINATES = Object.entries<DemandParameter>(DEMAND_PARAMETERS).map(([parameter, given]) => {
  if ('ratio' in given)
    return {
      parameter,
      mean: portableMath.log(given.start),
      deviation: given.ratio,
      value: portableMath.exp,
    };
  const { start: mean, difference: deviation, least = 0, most = Number.POSITIVE_INFINITY } = given;
  return { parameter, mean, deviation, value: (number: number) => Math.max(least, Math.min(most, number)) };
});

function parametersOf(numbers: SearchPoint): DemandParameters {
  return Object.fromEntries(
    COORDINATES.map(({ parameter, value }, i) => [parameter, value(numbers[i]!)]),
  ) as DemandParameters;
}
