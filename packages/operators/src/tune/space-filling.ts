import type { EngineProfile } from '@servegym/simulator';
import {
  type Candidate,
  type CandidateSpace,
  candidateKey,
  isPossible,
  KNOB_NAMES,
  type Knob,
  withoutIdle,
} from './candidate.ts';

/** A prime for each setting, in the order of `KNOB_NAMES`. */
const BASES = [2, 3, 7, 5, 11, 13, 17, 19, 23, 29, 31, 37];

/** Points of a sequence that are looked at for each candidate wanted, before the space counts as exhausted. */
const MOST_POINTS_EACH = 20;

/** Different candidates that cover the space evenly: a Halton sequence, without what cannot be. */
export function spaceFillingCandidates(
  profile: EngineProfile,
  space: CandidateSpace,
  count: number,
): Candidate[] {
  const found = new Map<string, Candidate>();
  for (let point = 1; found.size < count && point <= MOST_POINTS_EACH * count; point += 1) {
    const candidate = withoutIdle(space, candidateAt(space, point));
    if (isPossible(profile, candidate)) found.set(candidateKey(candidate), candidate);
  }
  return [...found.values()];
}

/** Candidates that differ in one setting that has an effect, by one step up or down; weights and switches by any. */
export function neighbours(profile: EngineProfile, space: CandidateSpace, candidate: Candidate): Candidate[] {
  return (Object.keys(space) as Knob[])
    .flatMap((knob) => {
      const values: readonly Candidate[Knob][] = space[knob];
      const at = values.indexOf(candidate[knob]);
      const isScale = typeof candidate[knob] === 'number';
      const others = isScale
        ? [at - 1, at + 1].filter((i) => i >= 0 && i < values.length)
        : [...values.keys()].filter((i) => i !== at);
      return others.map((i) => withoutIdle(space, { ...candidate, [knob]: values[i] }));
    })
    .filter((near) => isPossible(profile, near))
    .filter((near) => candidateKey(near) !== candidateKey(candidate));
}

function candidateAt(space: CandidateSpace, point: number): Candidate {
  const chosen = Object.values(KNOB_NAMES).map((knob, k) => {
    const values = space[knob];
    return [knob, values[Math.floor(radicalInverse(point, BASES[k]) * values.length)]];
  });
  return Object.fromEntries(chosen);
}

/** The digits of `point` in a base, mirrored at the point: a number in [0, 1). */
function radicalInverse(point: number, base: number): number {
  let inverse = 0;
  let weight = 1 / base;
  for (let rest = point; rest > 0; rest = Math.floor(rest / base)) {
    inverse += (rest % base) * weight;
    weight /= base;
  }
  return inverse;
}
