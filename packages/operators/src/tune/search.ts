import type { RefusedRequests } from '../deployment/deployment.ts';
import {
  type Candidate,
  type CandidateSpace,
  candidateKey,
  isPossible,
  type Knob,
  neighbours,
  spaceFillingCandidates,
  vllmDefaults,
} from './candidate.ts';
import { type LoadPoint, sloUse } from './load-point.ts';
import type { CandidateMeasurer, MeasuredCandidate, SustainedLoad } from './measure-candidates.ts';
import type { SloTerm } from './slo.ts';
import { LEAST_LOAD, type LoadSearch, sustainedLoad, sustainedRate } from './sustained-load.ts';
import { someBlocks, type Traffic } from './traffic.ts';
import type { Objective } from './tune-result.ts';

/** Options of a tuning. */
export interface TuneOptions extends Pick<SearchOptions, 'objective' | 'start' | 'onBest'> {
  readonly slo: readonly SloTerm[];
  /** Requests that were too long, and are not in the traffic. */
  readonly refused: RefusedRequests;
  readonly knobs: readonly Knob[];
  readonly minQuality: number;
  /** Fewest and most engines that may share the traffic. */
  readonly replicas: readonly [fewest: number, most: number];
  /** Times the rate of the traffic. */
  readonly rateScale: number;
  readonly seed: number;
  readonly onProgress?: (stage: string, share: number) => void;
}

/** A candidate with what it sustains on the traffic of the search. */
export interface SearchedCandidate extends SustainedLoad {
  /**
   * Larger is better: the sustained load, with a concurrency the requests/s that are served at it, or for `latency` the
   * inverse of the largest share of a limit.
   */
  readonly score: number;
}

export interface SearchOptions {
  /** Figure that the search maximises. */
  readonly objective: Objective;
  /** Candidates to start from. */
  readonly start: number;
  /** For `latency`: the load of one engine, times the rate of the traffic. */
  readonly targetLoad: number;
  /** Told what the search is at. */
  readonly onStage?: (stage: string) => void;
  /** Told of the best candidate on all of the search traffic, whenever there is a better one. */
  readonly onBest?: (best: SearchedCandidate) => void;
}

/** The first look: a few candidates show which load tells good ones from bad ones. */
const SCOUTS = 48;
const SCOUT_BLOCKS = 2;

/** The stages of the halving: the share that goes in, on how much of the traffic, and how near their loads are told. */
const RUNGS = [
  { keep: 1 / 8, blocks: 6, search: { step: 1.6, tolerance: 1.2 } },
  { keep: 1 / 4, blocks: Number.POSITIVE_INFINITY, search: { step: 1.25, tolerance: 1.07 } },
] as const;

/** At least so many go into each stage. */
const FEWEST_KEPT = 16;
/** Candidates that sustain less than this share of the best are not looked at more closely. */
const FLOOR = 0.5;

/** Factor on a load that nobody sustains, until somebody does. */
const LOWER = 1 / 4;

/** Around the best, only whether a neighbour is better still matters. */
const NEAR = { step: 1.08, tolerance: 1.02 } as const;
/** Candidates around which the search goes on, and how often. */
const CENTRES = 3;
const MOST_ROUNDS = 5;
/** The closest are measured at the same loads: these, times what the best sustains. */
const CLOSEST = 12;
const SIDE_BY_SIDE = [0.85, 0.93, 1, 1.06, 1.14];
/** A setting goes back to its default when that costs less than this share of the score. */
const SIMPLER = 0.01;

/**
 * Looks for the best settings: successive halving over candidates that cover the space evenly, then steps to better
 * neighbours until there are none, then back to defaults where they are as good. All candidates see the same traffic
 * with the same random draws.
 */
export class CandidateSearch {
  readonly #measurer: CandidateMeasurer;
  readonly #space: CandidateSpace;
  readonly #traffic: Traffic;
  readonly #options: SearchOptions;
  readonly #defaults: Candidate;
  /** The defaults, where the engine starts with them. */
  readonly #alwaysKept: readonly Candidate[];
  /** Keys of the candidates that were simulated. */
  readonly #seen = new Set<string>();
  /** By key, those that all of the search traffic was played on. */
  readonly #full = new Map<string, SearchedCandidate>();
  /** Score of the best that `onBest` was told of. */
  #told = 0;

  constructor(measurer: CandidateMeasurer, space: CandidateSpace, traffic: Traffic, options: SearchOptions) {
    this.#measurer = measurer;
    this.#space = space;
    this.#traffic = traffic;
    this.#options = options;
    this.#defaults = vllmDefaults(measurer.profile);
    this.#alwaysKept = isPossible(measurer.profile, this.#defaults) ? [this.#defaults] : [];
  }

  async run() {
    const guess = await this.#halve();
    await this.#measureFully(this.#alwaysKept, { guess, step: 1.6, tolerance: 1.04 });
    await this.#climb(guess);
    const best = this.#best();
    const found = best.load === 0 ? ranked([...this.#full.values()]) : await this.#sideBySide(best);
    return {
      /** Different candidates that were simulated. */
      considered: this.#seen.size,
      /** Candidates measured on all of the search traffic, the best first; vLLM's defaults are among them. */
      ranked: found,
    };
  }

  #stage(name: string): void {
    this.#options.onStage?.(name);
  }

  async #measure(
    candidates: readonly Candidate[],
    on: Traffic,
    how: Omit<MeasuredCandidate, 'candidate'>,
  ): Promise<SearchedCandidate[]> {
    for (const candidate of candidates) this.#seen.add(candidateKey(candidate));
    const { objective, targetLoad } = this.#options;
    const at = objective === 'latency' ? { loads: [targetLoad] } : how;
    const found = await this.#measurer.sustained(
      on,
      candidates.map((candidate) => ({ candidate, ...at })),
    );
    const { slo } = this.#measurer;
    return found.map((each) => ({ ...each, score: score(each.points, on, slo, objective) }));
  }

  async #measureFully(candidates: readonly Candidate[], search: LoadSearch): Promise<void> {
    const fresh = candidates.filter((candidate) => !this.#full.has(candidateKey(candidate)));
    this.#keep(await this.#measure(fresh, this.#traffic, { search }));
  }

  #keep(found: readonly SearchedCandidate[]): void {
    for (const each of found) this.#full.set(candidateKey(each.candidate), each);
  }

  /** The best on all of the search traffic. */
  #best(): SearchedCandidate {
    const [best] = ranked([...this.#full.values()]);
    if (best.score > this.#told) this.#options.onBest?.(best);
    this.#told = Math.max(this.#told, best.score);
    return best;
  }

  /** Of requests in flight, settings that hold fewer may serve more a second. */
  #floor({ load }: SearchedCandidate): number {
    return (this.#traffic.concurrency === undefined ? load : FLOOR * load) || LEAST_LOAD;
  }

  /** Successive halving. Answers the load that the best sustains. */
  async #halve(): Promise<number> {
    const { profile, slo } = this.#measurer;
    const start = spaceFillingCandidates(profile, this.#space, this.#options.start);
    const few = someBlocks(this.#traffic, SCOUT_BLOCKS);
    this.#stage('a first look');
    const scouts = await this.#measure([...this.#alwaysKept, ...start.slice(0, SCOUTS)], few, {
      search: { guess: 1, step: 2, tolerance: 1.3 },
    });
    let guess = ranked(scouts)[0].load || LEAST_LOAD;
    this.#stage(`${start.length.toLocaleString('en-US')} candidates`);
    let pool = ranked(await this.#measure(start, few, { loads: [guess] }));
    for (const { keep, blocks, search } of RUNGS) {
      const left = pool
        .slice(0, Math.max(FEWEST_KEPT, Math.ceil(pool.length * keep)))
        .map(({ candidate }) => candidate);
      this.#stage(`${left.length.toLocaleString('en-US')} that are left`);
      const on = someBlocks(this.#traffic, blocks);
      const rung = (load: number) =>
        this.#measure(left, on, { search: { guess: load, floor: FLOOR * load, ...search } });
      let found = await rung(guess);
      const isAnyGood = () => found.some(({ points }) => sloUse(points[0], slo) <= 1);
      // What a few stretches sustain may be far above what all do.
      while (this.#options.objective !== 'latency' && guess > LEAST_LOAD && !isAnyGood()) {
        guess = Math.max(LEAST_LOAD, guess * LOWER);
        found = await rung(guess);
      }
      pool = ranked(found);
      guess = pool[0].load || guess;
      if (blocks === Number.POSITIVE_INFINITY) this.#keep(found);
    }
    this.#best();
    return guess;
  }

  /** Steps to better neighbours of the best, until there are none. */
  async #climb(guess: number): Promise<void> {
    const { profile } = this.#measurer;
    const visited = new Set<string>();
    for (let round = 1; round <= MOST_ROUNDS; round += 1) {
      const centres = ranked([...this.#full.values()])
        .slice(0, CENTRES)
        .filter(({ candidate }) => !visited.has(candidateKey(candidate)));
      if (centres.length === 0) break;
      this.#stage(`the neighbours of the best, round ${round}`);
      const best = this.#best();
      for (const { candidate } of centres) visited.add(candidateKey(candidate));
      const near = unique(centres.flatMap(({ candidate }) => neighbours(profile, this.#space, candidate)));
      await this.#measureFully(near, { guess: best.load || guess, floor: this.#floor(best), ...NEAR });
    }
  }

  /**
   * Brackets end at different loads for different candidates. Those that are close are measured at the same ones, then
   * with settings back at their defaults.
   */
  async #sideBySide(best: SearchedCandidate): Promise<SearchedCandidate[]> {
    const final = new Map<string, SearchedCandidate>();
    const how =
      this.#traffic.concurrency === undefined
        ? { loads: SIDE_BY_SIDE.map((step) => step * best.load) }
        : { search: { guess: best.load, floor: this.#floor(best), ...NEAR } };
    const compare = async (candidates: readonly Candidate[]) => {
      const fresh = candidates.filter((candidate) => !final.has(candidateKey(candidate)));
      for (const found of await this.#measure(fresh, this.#traffic, how))
        final.set(candidateKey(found.candidate), found);
      return candidates.map((candidate) => final.get(candidateKey(candidate))!);
    };
    this.#stage('the best side by side');
    const close = ranked([...this.#full.values()]).slice(0, CLOSEST);
    await compare(close.map(({ candidate }) => candidate));
    this.#stage('simpler settings');
    await this.#simplify(compare, ranked([...final.values()])[0]);
    const others = [...this.#full.values()].filter(({ candidate }) => !final.has(candidateKey(candidate)));
    return [...preferSimple(ranked([...final.values()]), this.#defaults), ...ranked(others)];
  }

  /** Measures the best with one setting after the other back at its default, for as long as that is as good. */
  async #simplify(
    compare: (candidates: readonly Candidate[]) => Promise<readonly SearchedCandidate[]>,
    best: SearchedCandidate,
  ): Promise<void> {
    let current = best.candidate;
    while (true) {
      const simpler = (Object.keys(this.#space) as Knob[])
        .filter((knob) => current[knob] !== this.#defaults[knob])
        .map((knob): Candidate => ({ ...current, [knob]: this.#defaults[knob] }))
        .filter((candidate) => isPossible(this.#measurer.profile, candidate));
      if (simpler.length === 0) return;
      const found = ranked(await compare(simpler))[0];
      if (found.score < best.score * (1 - SIMPLER)) return;
      current = found.candidate;
    }
  }
}

/** Puts the candidate with the fewest changed settings first among those that are as good as the best. */
function preferSimple(candidates: readonly SearchedCandidate[], defaults: Candidate): SearchedCandidate[] {
  const least = candidates[0].score * (1 - SIMPLER);
  const changes = ({ candidate }: SearchedCandidate) =>
    (Object.keys(candidate) as Knob[]).filter((knob) => candidate[knob] !== defaults[knob]).length;
  const asGood = candidates.filter(({ score: each }) => each >= least);
  const chosen = asGood.reduce((best, each) => (changes(each) < changes(best) ? each : best));
  return [chosen, ...candidates.filter((each) => each !== chosen)];
}

function score(
  points: readonly LoadPoint[],
  traffic: Traffic,
  slo: readonly SloTerm[],
  objective: Objective,
): number {
  if (objective !== 'latency') {
    const isOpenLoop = traffic.concurrency === undefined;
    if (points.length > 1)
      return isOpenLoop ? sustainedLoad(points, slo) : sustainedRate(points, traffic, slo);
    // At a single load: the more of the SLO is left there, the better.
    const [{ load, rate }] = points;
    return (isOpenLoop ? load : rate) / (1 + Math.log1p(sloUse(points[0], slo)));
  }
  const [point] = points;
  if (point === undefined) return 0;
  const worst = Math.max(...slo.map(({ limitMs }, t) => (point.values[t] ?? Number.NaN) / limitMs));
  // Requests that are never served have no latency to count.
  return Number.isNaN(worst) ? 0 : 1 / (worst * Math.max(1, sloUse(point, slo) / 100));
}

function ranked(candidates: readonly SearchedCandidate[]): SearchedCandidate[] {
  return candidates.toSorted(
    (a, b) => b.score - a.score || (candidateKey(a.candidate) < candidateKey(b.candidate) ? -1 : 1),
  );
}

function unique(candidates: readonly Candidate[]): Candidate[] {
  return [...new Map(candidates.map((candidate) => [candidateKey(candidate), candidate])).values()];
}
