import { rankCorrelation } from '@servegym/simulator/statistics';
import type { SearchReport } from '../report/result.ts';

/** Stage of a search: the more of the traffic it plays, the fewer points go in. */
export interface SearchStage {
  /** What the search is at. */
  readonly name: string;
  /** Blocks of the traffic that are played; `Infinity` for all. */
  readonly blocks: number;
  /** Share of the points of each kind that goes in, and the fewest of them. Default all. */
  readonly keep?: number;
  readonly fewest?: number;
}

/** What is searched for. A point is anything that can be evaluated. */
export interface SearchQuestion<Point, Found extends Point & Scored, Stage extends SearchStage> {
  /** A name for equal points. */
  keyOf(point: Point): string;
  /** The best points of each kind go on. Default: all points are of one. */
  kindOf?(point: Point): string;
  /** Figures of points, in their order. */
  evaluate(points: readonly Point[], stage: Stage): Promise<readonly Found[]>;
  /** Whether a bound leaves a point that is not evaluated yet a chance to be kept. Default: it does. */
  mayBeKept?(point: Point, stage: Stage): boolean;
  /** Told what the search is at, and how far parts of the traffic have agreed so far. */
  readonly onStage?: ((stage: string, agreements: SearchReport['agreements']) => void) | undefined;
  /** Told of the best point of each stage on a part of the traffic, and on all of it whenever there is a better one. */
  readonly onBest?: ((best: Found, isWhole: boolean) => void) | undefined;
}

export interface Scored {
  /** The larger, the better. */
  readonly score: number;
}

/** Points around which the search goes on, and how often. */
const CENTRES = 3;
const MOST_ROUNDS = 5;

/** Successive halving, then steps to better neighbours. All points of a stage see the same traffic with the same draws. */
export class Searcher<Point, Found extends Point & Scored, Stage extends SearchStage> {
  readonly #question: SearchQuestion<Point, Found, Stage>;
  readonly #seen = new Set<string>();
  /** By key, points that all of the traffic was played on. */
  readonly #full = new Map<string, Found>();
  /** Points that a bound ruled out before they were evaluated. */
  ruledOut = 0;
  /** Agreement of the order of points on a part of the traffic with that on a larger part. */
  readonly agreements: SearchReport['agreements'][number][] = [];
  #bestScore = Number.NEGATIVE_INFINITY;

  constructor(question: SearchQuestion<Point, Found, Stage>) {
    this.#question = question;
  }

  /** Different points that were evaluated. */
  get considered(): number {
    return this.#seen.size;
  }

  /** Points that all of the traffic was played on, the best first. */
  get ranked(): Found[] {
    return this.order([...this.#full.values()]);
  }

  /** The best first; of equal ones those that were evaluated first. */
  order(points: readonly Found[]): Found[] {
    return points.toSorted((a, b) => b.score - a.score);
  }

  async evaluate(points: readonly Point[], stage: Stage): Promise<Found[]> {
    const question = this.#question;
    question.onStage?.(stage.name, this.agreements);
    const found = [...(await question.evaluate(points, stage))];
    for (const each of found) this.#seen.add(question.keyOf(each));
    const isWhole = stage.blocks === Number.POSITIVE_INFINITY;
    if (isWhole) for (const each of found) this.#full.set(question.keyOf(each), each);
    const [best] = isWhole ? this.ranked : this.order(found);
    if (best !== undefined && (!isWhole || best.score > this.#bestScore)) {
      if (isWhole) this.#bestScore = best.score;
      question.onBest?.(best, isWhole);
    }
    return found;
  }

  /** @param known points of the first stage that were evaluated before it */
  async halve(
    start: readonly Point[],
    stages: readonly Stage[],
    known: readonly Found[] = [],
  ): Promise<void> {
    const kindOf = (point: Point) => this.#question.kindOf?.(point) ?? '';
    const starting = Map.groupBy([...known, ...start], kindOf);
    let pool: Found[] = [];
    let before: Stage | undefined;
    for (const stage of stages) {
      const kept = [...Map.groupBy(this.order(pool), kindOf)].flatMap(([kind, found]) => {
        const share = Math.ceil((stage.keep ?? 1) * (starting.get(kind)?.length ?? 0));
        return found.slice(0, Math.max(stage.fewest ?? 0, share));
      });
      const points = before === undefined ? this.#possible(start, stage) : kept;
      const found = await this.evaluate(points, stage);
      if (before !== undefined) this.#compare(pool, found, before, stage);
      pool = before === undefined ? [...known, ...found] : found;
      before = stage;
    }
  }

  /**
   * Evaluates the neighbours of the best points on all of the traffic, until none is better.
   * @param among points that are climbed from. Default: all.
   */
  async climb(
    stage: Stage,
    neighbours: (point: Found) => readonly Point[],
    among: (point: Found) => boolean = () => true,
  ): Promise<void> {
    const { keyOf } = this.#question;
    const visited = new Set<string>();
    for (let round = 1; round <= MOST_ROUNDS; round++) {
      const best = this.ranked.filter(among).slice(0, CENTRES);
      const centres = best.filter((each) => !visited.has(keyOf(each)));
      if (centres.length === 0) return;
      for (const each of centres) visited.add(keyOf(each));
      const near = new Map(centres.flatMap(neighbours).map((each) => [keyOf(each), each]));
      const fresh = [...near].filter(([key]) => !this.#full.has(key)).map(([, each]) => each);
      await this.evaluate(this.#possible(fresh, stage), { ...stage, name: `${stage.name}, round ${round}` });
    }
  }

  #possible(points: readonly Point[], stage: Stage): Point[] {
    const possible = points.filter((point) => this.#question.mayBeKept?.(point, stage) ?? true);
    this.ruledOut += points.length - possible.length;
    return possible;
  }

  #compare(pool: readonly Found[], found: readonly Found[], before: Stage, stage: Stage): void {
    const { keyOf } = this.#question;
    const scores = new Map(pool.map((each) => [keyOf(each), each.score]));
    this.agreements.push({
      ...{ stage: stage.name, blocks: before.blocks, points: found.length },
      beside: Number.isFinite(stage.blocks) ? stage.blocks : null,
      correlation: rankCorrelation(
        found.map((each) => scores.get(keyOf(each))!),
        found.map(({ score }) => score),
      ),
    });
  }
}
