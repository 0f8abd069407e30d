import { type Interval, mean, stratifiedBootstrap } from '@servegym/simulator/statistics';
import {
  type AnchoredReturn,
  type Evaluation,
  episodeGains,
  type TaskEvaluation,
} from './evaluate-policy.ts';

/** Difference of two policies on the same traffic: of their gains, or of their scores. */
export interface PairedDifference {
  /** Mean of (figure of the first - figure of the second), over the episodes. */
  readonly mean: number;
  /** 95 % interval of that mean, by the bootstrap, stratified by task. */
  readonly ci95: Interval;
  /** Share of the episodes in which the first did better; a tie counts half. */
  readonly probability: number;
  readonly probabilityCi95: Interval;
  /** Verdict on the first policy; `undecided` when the interval contains 0. */
  readonly verdict: 'better' | 'worse' | 'undecided';
}

/** Two policies, on each task and over all of them. */
interface Comparison {
  readonly first: number;
  readonly second: number;
  readonly tasks: readonly { readonly taskId: string | number; readonly difference: PairedDifference }[];
  readonly overall: PairedDifference;
}

/** Share of the episodes whose score exceeds a threshold. */
interface ProfilePoint {
  readonly threshold: number;
  readonly share: number;
}

/** Several policies that played the same traffic. The numbers are positions in the list of evaluations. */
export interface Standings {
  /** Figure that is compared: the gain, which nothing floors, or the score where the environment gives no anchors. */
  readonly measure: 'gain' | 'score';
  /** 1 for those that no other is better than; 1 + how many are better, in general. */
  readonly ranks: readonly number[];
  /** Every pair once. */
  readonly comparisons: readonly Comparison[];
  /** For each policy, over all its episodes: 21 thresholds from 0 to 1. */
  readonly profiles: readonly (readonly ProfilePoint[])[];
}

const THRESHOLDS = Array.from({ length: 21 }, (_, i) => i / 20);

/**
 * Compares policies episode by episode. A policy ranks behind another only where the interval of their difference
 * excludes 0; otherwise they share a rank. Performance profiles: Dolan and Moré, 2002; Agarwal et al., NeurIPS 2021.
 * Throws a `RangeError` unless all played the same tasks and seeds.
 */
export function compareEvaluations(evaluations: readonly Evaluation[]): Standings {
  if (evaluations.length < 2)
    throw new RangeError(`Expected at least two policies, got ${evaluations.length}`);
  const measure = evaluations.every(({ gains }) => gains !== null) ? 'gain' : 'score';
  const comparisons: Comparison[] = [];
  for (let first = 0; first < evaluations.length; first++) {
    for (let second = first + 1; second < evaluations.length; second++) {
      comparisons.push({ first, second, ...comparePair(evaluations[first], evaluations[second], measure) });
    }
  }
  const isBetter = (a: number, b: number) =>
    comparisons.some(
      ({ first, second, overall: { verdict } }) =>
        (first === a && second === b && verdict === 'better') ||
        (first === b && second === a && verdict === 'worse'),
    );
  return {
    measure,
    ranks: evaluations.map(
      (_, policy) => 1 + evaluations.filter((_, other) => isBetter(other, policy)).length,
    ),
    comparisons,
    profiles: evaluations.map(performanceProfile),
  };
}

function comparePair(
  a: Evaluation,
  b: Evaluation,
  measure: Standings['measure'],
): Pick<Comparison, 'tasks' | 'overall'> {
  if (episodesPlayed(a) !== episodesPlayed(b)) {
    throw new RangeError(`Expected ${a.policy} and ${b.policy} to have played the same tasks and seeds`);
  }
  const differences = a.tasks.map((task, t) => {
    const others = figuresOf(b.tasks[t], measure);
    return figuresOf(task, measure).map((figure, e) => figure - others[e]);
  });
  return {
    tasks: a.tasks.map(({ taskId }, t) => ({ taskId, difference: describe([differences[t]]) })),
    overall: describe(differences),
  };
}

function figuresOf({ episodes }: TaskEvaluation, measure: Standings['measure']): readonly number[] {
  if (measure === 'gain') return episodeGains(episodes as readonly AnchoredReturn[])!;
  return episodes.map(({ score }) => score);
}

function episodesPlayed({ tasks }: Evaluation): string {
  return JSON.stringify(tasks.map(({ taskId, episodes }) => [taskId, episodes.map(({ seed }) => seed)]));
}

function describe(differences: readonly (readonly number[])[]): PairedDifference {
  const [low, high] = stratifiedBootstrap(differences, mean);
  const wins = differences.map((stratum) => stratum.map((difference) => (Math.sign(difference) + 1) / 2));
  return {
    mean: mean(differences.flat()),
    ci95: [low, high],
    probability: mean(wins.flat()),
    probabilityCi95: stratifiedBootstrap(wins, mean),
    verdict: low > 0 ? 'better' : high < 0 ? 'worse' : 'undecided',
  };
}

function performanceProfile({ tasks }: Evaluation): ProfilePoint[] {
  const scores = tasks.flatMap((task) => task.episodes.map((episode) => episode.score));
  return THRESHOLDS.map((threshold) => ({
    threshold,
    share: scores.filter((score) => score > threshold).length / scores.length,
  }));
}
