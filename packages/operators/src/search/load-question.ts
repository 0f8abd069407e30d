import type { EngineProfile, Trace } from '@servegym/simulator';
import { candidateKey, fewestEngines } from './candidate.ts';
import type { EngineChoice, EvaluatedChoice, Evaluator, SustainedLoad } from './evaluator.ts';
import { sloUse } from './load-point.ts';
import type { Scored, SearchQuestion, SearchStage } from './searcher.ts';
import { LEAST_LOAD, type LoadSearch } from './sustained-load.ts';
import { leastEngineSeconds, type TraceWork, traceWork } from './trace-cost.ts';
import { someBlocks, type Traffic } from './traffic.ts';

/** Stage of a search for engines and settings, by the load that they sustain. */
export interface LoadStage extends SearchStage {
  /** Ratios by which the load that the best of a kind sustains is looked for, from what is known of it. */
  readonly search?: Pick<LoadSearch, 'step' | 'tolerance'>;
  /** Loads instead, times what is known. */
  readonly steps?: readonly number[];
  /** Share of what is known below which no load is looked at. */
  readonly floor?: number;
  /** Lowers what is known until one of a kind sustains it: a few stretches may sustain far more than all. */
  readonly lowers?: boolean;
}

/** A choice with what it sustains on a part of the traffic. */
export interface SearchedLoad extends SustainedLoad, Scored {}

/** Factor on a load that nobody sustains, until somebody does. */
const LOWER = 1 / 4;
/** Share of the requests that has to meet a bound for the least time of their work to bound the load. */
const MOST = 0.9;
/** Output of requests that still run over that of all, at most: the longest run longest. */
const LONGER = 2;

/** The question which engines and settings sustain the most. */
export class LoadQuestion implements SearchQuestion<EngineChoice, SearchedLoad, LoadStage> {
  readonly #evaluator: Evaluator;
  readonly #traffic: Traffic;
  readonly #options: LoadQuestionOptions;
  /** By kind, the load of the best so far, and its score on all of the traffic. */
  readonly #known = new Map<string, Scored & { readonly load: number }>();
  readonly #parts = new Map<number, Traffic>();
  readonly #works = new Map<Trace, TraceWork>();
  readonly onStage: LoadQuestionOptions['onStage'];
  readonly onBest: LoadQuestionOptions['onBest'];

  constructor(evaluator: Evaluator, traffic: Traffic, options: LoadQuestionOptions) {
    this.#evaluator = evaluator;
    this.#traffic = traffic;
    this.#options = options;
    this.onStage = options.onStage;
    this.onBest = options.onBest;
  }

  keyOf({ profile, candidate }: EngineChoice): string {
    return `${profile.name} ${candidateKey(candidate)}`;
  }

  readonly kindOf = (choice: EngineChoice): string => this.#options.kindOf?.(choice) ?? '';

  /** Load that the best of a kind sustains, as far as is known; 1 at first. */
  #knownLoad(kind: string): number {
    return this.#known.get(kind)?.load ?? 1;
  }

  readonly evaluate = async (choices: readonly EngineChoice[], stage: LoadStage): Promise<SearchedLoad[]> => {
    const on = this.#part(stage.blocks);
    const found = await this.#measure(choices, on, stage);
    const open = new Set(stage.lowers && this.#options.load === undefined ? choices.keys() : []);
    const isGood = ({ points }: SearchedLoad) => sloUse(points[0], this.#evaluator.slo) <= 1;
    while (open.size > 0) {
      const kinds = Map.groupBy(open, (i) => this.kindOf(choices[i]));
      for (const [kind, own] of kinds) {
        const known = this.#knownLoad(kind);
        const load = Math.max(LEAST_LOAD, known * LOWER);
        if (known > LEAST_LOAD && !own.some((i) => isGood(found[i])))
          this.#known.set(kind, { load, score: Number.NEGATIVE_INFINITY });
        else for (const i of own) open.delete(i);
      }
      const again = [...open];
      const lower = await this.#measure(
        again.map((i) => choices[i]),
        on,
        stage,
      );
      for (const [at, i] of again.entries()) found[i] = lower[at];
    }
    this.#learn(found, stage);
    return found;
  };

  /**
   * Whether the work of the requests leaves time for a load at which a choice would still be looked at: where most requests
   * have to begin in time, all but the decodes of those that still run has to be done soon after the last arrival.
   */
  readonly mayBeKept = (choice: EngineChoice, { blocks, floor = 0 }: LoadStage): boolean => {
    const { concurrency } = this.#traffic;
    const limits = this.#evaluator.slo.filter(
      ({ metric, quantile, priorityClass }) =>
        metric !== 'tpot' && quantile !== null && quantile >= MOST && priorityClass === undefined,
    );
    if (concurrency !== undefined || this.#options.load !== undefined || limits.length === 0) return true;
    const { trace } = this.#part(blocks);
    const work = this.#works.get(trace) ?? traceWork(trace);
    this.#works.set(trace, work);
    const requests = trace.arrivalMs.length;
    const { profile, candidate } = choice;
    const running = fewestEngines(candidate) * candidate.maxNumSeqs;
    const over = Math.max(0, 1 - (LONGER * running) / requests);
    const done = { ...work, decodes: over * work.decodes, context: over * work.context };
    const leastS = MOST * leastEngineSeconds(profile, candidate, done);
    const lateS = Math.min(...limits.map(({ limitMs }) => limitMs)) / 1000;
    const load = floor * this.#knownLoad(this.kindOf(choice));
    return trace.arrivalMs[requests - 1] / 1000 / load + lateS > leastS;
  };

  #part(blocks: number): Traffic {
    const part = this.#parts.get(blocks) ?? someBlocks(this.#traffic, blocks);
    this.#parts.set(blocks, part);
    return part;
  }

  async #measure(choices: readonly EngineChoice[], on: Traffic, stage: LoadStage): Promise<SearchedLoad[]> {
    const { load, scoreOf } = this.#options;
    const evaluated = choices.map(({ profile, candidate }): EvaluatedChoice => {
      const choice = { profile, candidate };
      const guess = this.#knownLoad(this.kindOf(choice));
      if (load !== undefined) return { ...choice, loads: [load] };
      if (stage.search === undefined) return { ...choice, loads: stage.steps!.map((step) => step * guess) };
      return {
        ...choice,
        search: { guess, ...stage.search, floor: (stage.floor ?? 0) * guess || LEAST_LOAD },
      };
    });
    const found = await this.#evaluator.sustained(on, evaluated);
    return found.map((each) => ({ ...each, score: scoreOf(each, on) }));
  }

  /** Takes over the load of the best of each kind. */
  #learn(found: readonly SearchedLoad[], { blocks, lowers }: LoadStage): void {
    const isWhole = blocks === Number.POSITIVE_INFINITY;
    for (const [kind, own] of Map.groupBy(found, this.kindOf)) {
      const best = own.reduce((a, b) => (b.score > a.score ? b : a));
      const known = this.#known.get(kind);
      if (best.load > 0 && (!isWhole || lowers || best.score > (known?.score ?? Number.NEGATIVE_INFINITY)))
        this.#known.set(kind, { load: best.load, score: isWhole ? best.score : Number.NEGATIVE_INFINITY });
    }
  }
}

interface LoadQuestionOptions
  extends Pick<SearchQuestion<EngineChoice, SearchedLoad, LoadStage>, 'kindOf' | 'onStage' | 'onBest'> {
  /** The larger, the better. */
  readonly scoreOf: (found: SustainedLoad, on: Traffic) => number;
  /** The only load that counts, instead of what is sustained. */
  readonly load?: number;
}

/** Settings of one profile as choices. */
export function choicesOn<C extends EngineChoice['candidate']>(
  profile: EngineProfile,
  candidates: readonly C[],
): EngineChoice[] {
  return candidates.map((candidate) => ({ profile, candidate }));
}
