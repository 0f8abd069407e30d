import { type FleetController, type FleetTask, type FleetTaskId, fleet } from '@servegym/environments';
import { portableMath, RandomStream } from '@servegym/simulator';
import { mean } from '@servegym/simulator/statistics';
import { createFleetPolicy, type DemandParameters, demandPolicy } from '../policies/fleet-policies.ts';
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
  readonly eliteReturn: number;
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
interface SearchRun {
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
async function searchPoints(
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
const ATTAINMENT_PRICE = { first: 2, rate: 10, allowed: 0.003, most: 20 };

/**
 * Searches the parameters of a `demandPolicy` with the cross-entropy method on the training split: of a task, or of any
 * fleet. All policies of a generation play the same episodes, and every generation others.
 */
export async function searchDemand(
  taskId: FleetTaskId | typeof ANY_SERVER,
  run: SearchRun,
): Promise<{ readonly parameters: DemandParameters; readonly steps: number }> {
  const { windows, elite } = DEMAND_SEARCH;
  let price = ATTAINMENT_PRICE.first;
  const taskOf = (seed: number): FleetTask =>
    taskId === ANY_SERVER
      ? fleet.drawTrainingTask(seed, windows)
      : { ...fleet.tasks.shipped[taskId], windows };
  const { point, steps } = await searchPoints(
    {
      ...DEMAND_SEARCH,
      numbers: COORDINATES,
      async play(points, traces) {
        const played = points.map(() => ({ score: 0, missed: 0 }));
        for (const trace of traces) {
          const task = taskOf(trace);
          const requests = fleet.drawRequests(task, trace);
          const totalsOf = (controller: FleetController) =>
            fleet.anchors.controlledTotals(task, trace, requests, controller);
          const rivals = RIVALS.map((name) => totalsOf(createFleetPolicy(name) as FleetController));
          const inTime = attainment(rivals.reduce((a, b) => (b.reward > a.reward ? b : a)));
          for (const [i, each] of points.entries()) {
            const totals = totalsOf(demandPolicy(parametersOf(each)));
            const missed = Math.max(0, inTime - attainment(totals));
            const earned = Math.max(LEAST_SHARE * windows, totals.reward) - price * windows * missed;
            played[i]!.score += earned / traces.length;
            played[i]!.missed += missed / traces.length;
          }
        }
        const best = played.toSorted((a, b) => b.score - a.score).slice(0, elite);
        const { rate, allowed, most } = ATTAINMENT_PRICE;
        price = Math.max(
          0,
          Math.min(most, price + rate * (mean(best.map(({ missed }) => missed)) - allowed)),
        );
        return played.map(({ score }) => score);
      },
    },
    run,
  );
  return { parameters: parametersOf(point), steps };
}

/** Share of the requests that were in time. */
const attainment = ({ attained, requests }: { readonly attained: number; readonly requests: number }) =>
  requests === 0 ? 1 : attained / requests;

/** A coordinate of the search: the parameter it stands for, where it begins, and how far apart the first ones are. */
interface Coordinate {
  readonly parameter: keyof DemandParameters;
  readonly mean: number;
  readonly deviation: number;
  readonly value: (number: number) => number;
}

const positive = (number: number) => Math.max(0, number);
const share = (number: number) => Math.max(0, Math.min(1, number));

/** Where the search begins, a choice. */
const COORDINATES: readonly Coordinate[] = [
  ofLogarithm('tpotShare', 0.8, 0.15),
  { parameter: 'decay', mean: 0.75, deviation: 0.2, value: share },
  { parameter: 'surge', mean: 0.3, deviation: 0.4, value: positive },
  { parameter: 'late', mean: 0.3, deviation: 0.3, value: positive },
  { parameter: 'spareReplicas', mean: 0.3, deviation: 0.4, value: (number) => number },
  ofLogarithm('reactionSeconds', 100, 0.5),
  ofLogarithm('usualWindows', 60, 0.5),
  ofLogarithm('sessionRoom', 1.2, 0.3),
  { parameter: 'sessionTrend', mean: 0.5, deviation: 0.4, value: positive },
  { parameter: 'sessionDecay', mean: 0.95, deviation: 0.05, value: share },
  { parameter: 'spread', mean: 1.5, deviation: 0.5, value: positive },
  { parameter: 'prefillRoom', mean: 0.3, deviation: 0.5, value: positive },
  { parameter: 'backlog', mean: 0.1, deviation: 0.3, value: positive },
  ofLogarithm('correction', 0.1, 0.8),
  ofLogarithm('mostCorrection', 1, 0.5),
  ofLogarithm('allowedMisses', 0.2, 0.8),
  ofLogarithm('admissionSeconds', 0.5, 1),
  ofLogarithm('prefixWeight', 2, 0.3),
  ofLogarithm('prefillShare', 1.45, 0.2),
];

function ofLogarithm(parameter: keyof DemandParameters, start: number, deviation: number): Coordinate {
  return { parameter, mean: portableMath.log(start), deviation, value: portableMath.exp };
}

function parametersOf(numbers: SearchPoint): DemandParameters {
  return Object.fromEntries(
    COORDINATES.map(({ parameter, value }, i) => [parameter, value(numbers[i]!)]),
  ) as unknown as DemandParameters;
}
