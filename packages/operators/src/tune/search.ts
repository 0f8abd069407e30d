import type { EngineProfile } from '@servegym/simulator';
import {
  type Candidate,
  type CandidateSpace,
  candidateKey,
  isPossible,
  type Knob,
  vllmDefaults,
} from './candidate.ts';
import { type LoadPoint, sloUse } from './load-point.ts';
import type { CandidateMeasurer } from './measure-candidates.ts';
import type { SloTerm } from './slo.ts';
import { neighbours, spaceFillingCandidates } from './space-filling.ts';
import { LEAST_LOAD, type LoadSearch, sustainedLoad, sustainedRate } from './sustained-load.ts';
import { someBlocks, type Traffic } from './traffic.ts';

/** Options of a tuning. */
export interface TuneOptions {
  readonly slo: readonly SloTerm[];
  readonly objective: Objective;
  readonly knobs: readonly Knob[];
  readonly minQuality: number;
  /** Fewest and most engines that may share the traffic. */
  readonly replicas: readonly [fewest: number, most: number];
  /** Times the rate of the traffic. */
  readonly rateScale: number;
  /** Candidates to start from. */
  readonly start: number;
  readonly seed: number;
  readonly onProgress?: (stage: string, share: number) => void;
  /** Told of the best candidate on all of the search traffic, whenever there is a better one. */
  readonly onBest?: (best: SearchedCandidate) => void;
}

/** Added to the seed where the held-out traffic is served, so that no chance is shared with the search. */
export const HELD_OUT_SEED = 7919;

/** Figure that the search maximises. */
export type Objective = 'goodput' | 'cost' | 'latency';

/** A candidate and what was measured of it on all of the search traffic. */
export interface SearchedCandidate {
  readonly candidate: Candidate;
  readonly points: readonly LoadPoint[];
  /** The load that it sustains, times the rate of the traffic. */
  readonly load: number;
  /**
   * Larger is better: the sustained load, with a concurrency the requests/s that are served at it, or for `latency` the
   * inverse of the largest share of a limit.
   */
  readonly score: number;
}

export interface SearchOptions {
  readonly objective: Objective;
  readonly seed: number;
  /** Candidates to start from. */
  readonly start: number;
  /** For `latency`: the load of one engine, times the rate of the traffic. */
  readonly targetLoad: number;
  /** Told what the search is at. */
  readonly onStage?: (stage: string) => void;
  readonly onBest?: TuneOptions['onBest'];
}

/** Result of the search. */
export interface SearchResult {
  /** Different candidates that were simulated. */
  readonly considered: number;
  /** Candidates measured on all of the search traffic, the best first; vLLM's defaults are among them. */
  readonly ranked: readonly SearchedCandidate[];
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
export async function searchCandidates(
  measurer: CandidateMeasurer,
  profile: EngineProfile,
  space: CandidateSpace,
  traffic: Traffic,
  slo: readonly SloTerm[],
  options: SearchOptions,
): Promise<SearchResult> {
  const { seed, onStage = () => undefined, onBest = () => undefined } = options;
  const seen = new Set<string>();
  const full = new Map<string, SearchedCandidate>();
  const defaults = vllmDefaults(profile);

  const isLatency = options.objective === 'latency';
  const isClosedLoop = traffic.concurrency !== undefined;
  // Of requests in flight, settings that hold fewer may serve more a second.
  const floorOf = ({ load }: SearchedCandidate) => (isClosedLoop ? FLOOR * load : load) || LEAST_LOAD;
  const measure = async (
    candidates: readonly Candidate[],
    on: Traffic,
    search: LoadSearch | { loads: number[] },
  ) => {
    for (const candidate of candidates) seen.add(candidateKey(candidate));
    const how = isLatency ? { loads: [options.targetLoad] } : 'loads' in search ? search : { search };
    const points = await measurer.measure(
      on,
      candidates.map((candidate) => ({ candidate, ...how })),
      { seed },
    );
    return candidates.map((candidate, i): SearchedCandidate => {
      const load = sustainedLoad(points[i], slo);
      return { candidate, points: points[i], load, score: score(points[i], on, slo, options) };
    });
  };
  const measureFully = async (candidates: readonly Candidate[], search: LoadSearch) => {
    const fresh = candidates.filter((candidate) => !full.has(candidateKey(candidate)));
    for (const found of await measure(fresh, traffic, search)) full.set(candidateKey(found.candidate), found);
  };
  let told = 0;
  const bestFully = () => {
    const [best] = ranked([...full.values()]);
    if (best.score > told) onBest(best);
    told = Math.max(told, best.score);
    return best;
  };

  const start = spaceFillingCandidates(profile, space, options.start);
  const alwaysKept = isPossible(profile, defaults) ? [defaults] : [];
  onStage('a first look');
  const scouts = await measure(
    [...alwaysKept, ...start.slice(0, SCOUTS)],
    someBlocks(traffic, SCOUT_BLOCKS),
    { guess: 1, step: 2, tolerance: 1.3 },
  );
  let guess = ranked(scouts)[0].load || LEAST_LOAD;
  onStage(`${start.length.toLocaleString('en-US')} candidates`);
  const first = await measure(start, someBlocks(traffic, SCOUT_BLOCKS), { loads: [guess] });
  let pool = ranked(first).map(({ candidate }) => candidate);
  for (const { keep, blocks, search } of RUNGS) {
    pool = pool.slice(0, Math.max(FEWEST_KEPT, Math.ceil(pool.length * keep)));
    onStage(`${pool.length.toLocaleString('en-US')} that are left`);
    const rung = (load: number) =>
      measure(pool, someBlocks(traffic, blocks), { guess: load, floor: FLOOR * load, ...search });
    let found = await rung(guess);
    // What a few stretches sustain may be far above what all do.
    while (!isLatency && guess > LEAST_LOAD && !found.some(({ points }) => sloUse(points[0], slo) <= 1)) {
      guess = Math.max(LEAST_LOAD, guess * LOWER);
      found = await rung(guess);
    }
    pool = ranked(found).map(({ candidate }) => candidate);
    guess = ranked(found)[0].load || guess;
    if (blocks === Number.POSITIVE_INFINITY)
      for (const each of found) full.set(candidateKey(each.candidate), each);
  }
  bestFully();
  await measureFully(alwaysKept, { guess, step: 1.6, tolerance: 1.04 });

  const visited = new Set<string>();
  for (let round = 1; round <= MOST_ROUNDS; round += 1) {
    const centres = ranked([...full.values()])
      .slice(0, CENTRES)
      .filter(({ candidate }) => !visited.has(candidateKey(candidate)));
    if (centres.length === 0) break;
    onStage(`the neighbours of the best, round ${round}`);
    const best = bestFully();
    for (const { candidate } of centres) visited.add(candidateKey(candidate));
    const near = unique(centres.flatMap(({ candidate }) => neighbours(profile, space, candidate)));
    await measureFully(near, { guess: best.load || guess, floor: floorOf(best), ...NEAR });
  }
  const best = bestFully();
  if (best.load === 0) return { considered: seen.size, ranked: ranked([...full.values()]) };
  // Brackets end at different loads for different candidates. Those that are close are measured at the same ones.
  const final = new Map<string, SearchedCandidate>();
  const compare = async (candidates: readonly Candidate[]) => {
    const fresh = candidates.filter((candidate) => !final.has(candidateKey(candidate)));
    const how = isClosedLoop
      ? { guess: best.load, floor: floorOf(best), ...NEAR }
      : { loads: SIDE_BY_SIDE.map((step) => step * best.load) };
    for (const found of await measure(fresh, traffic, how)) final.set(candidateKey(found.candidate), found);
    return candidates.map((candidate) => final.get(candidateKey(candidate))!);
  };
  onStage('the best side by side');
  const close = ranked([...full.values()]).slice(0, CLOSEST);
  await compare(close.map(({ candidate }) => candidate));
  onStage('simpler settings');
  await simplify(compare, ranked([...final.values()])[0], profile, space, defaults);
  const others = [...full.values()].filter(({ candidate }) => !final.has(candidateKey(candidate)));
  return {
    considered: seen.size,
    ranked: [...preferSimple(ranked([...final.values()]), defaults), ...ranked(others)],
  };
}

/** Measures the best with one setting after the other back at its default, for as long as that is as good. */
async function simplify(
  compare: (candidates: readonly Candidate[]) => Promise<readonly SearchedCandidate[]>,
  best: SearchedCandidate,
  profile: EngineProfile,
  space: CandidateSpace,
  defaults: Candidate,
): Promise<void> {
  let current = best.candidate;
  while (true) {
    const simpler = (Object.keys(space) as Knob[])
      .filter((knob) => current[knob] !== defaults[knob])
      .map((knob): Candidate => ({ ...current, [knob]: defaults[knob] }))
      .filter((candidate) => isPossible(profile, candidate));
    if (simpler.length === 0) return;
    const found = ranked(await compare(simpler))[0];
    if (found.score < best.score * (1 - SIMPLER)) return;
    current = found.candidate;
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
  { objective }: SearchOptions,
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
