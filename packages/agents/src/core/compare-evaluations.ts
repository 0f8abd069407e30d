import { mean, stratifiedBootstrap } from '@servegym/simulator/statistics';
import {
  type AnchoredReturn,
  type Evaluation,
  episodeGains,
  type TaskEvaluation,
} from './evaluate-policy.ts';

/** Difference of two policies on the same traffic: of their gains, or of their scores. */
export type PairedDifference = Readonly<ReturnType<typeof describe>>;

/** Several policies that played the same traffic. The numbers are positions in the list of evaluations. */
export type Standings = Readonly<ReturnType<typeof compareEvaluations>>;

type Measure = 'gain' | 'score';

const THRESHOLDS = Array.from({ length: 21 }, (_, i) => i / 20);

/**
 * Compares policies episode by episode. A policy ranks behind another only where the interval of their difference
 * excludes 0; otherwise they share a rank. Performance profiles: Dolan and Moré, 2002; Agarwal et al., NeurIPS 2021.
 * Throws a `RangeError` unless all played the same tasks and seeds.
 */
export function compareEvaluations(evaluations: readonly Evaluation[]) {
  if (evaluations.length < 2)
    throw new RangeError(`Expected at least two policies, got ${evaluations.length}`);
  const measure: Measure = evaluations.every(({ gains }) => gains !== null) ? 'gain' : 'score';
  const comparisons = evaluations.flatMap((a, first) =>
    evaluations
      .slice(first + 1)
      .map((b, i) => ({ first, second: first + 1 + i, ...comparePair(a, b, measure) })),
  );
  const isBetter = (a: number, b: number) =>
    comparisons.some(
      ({ first, second, overall: { verdict } }) =>
        (first === a && second === b && verdict === 'better') ||
        (first === b && second === a && verdict === 'worse'),
    );
  return {
    /** Figure that is compared: the gain, which nothing floors, or the score where the environment gives no anchors. */
    measure,
    /** 1 for those that no other is better than; 1 + how many are better, in general. */
    ranks: evaluations.map(
      (_, policy) => 1 + evaluations.filter((_, other) => isBetter(other, policy)).length,
    ),
    /** Every pair once. */
    comparisons,
    /** For each policy, over all its episodes: 21 thresholds from 0 to 1, and the share of the scores beyond each. */
    profiles: evaluations.map(performanceProfile),
  };
}

function comparePair(a: Evaluation, b: Evaluation, measure: Measure) {
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

function figuresOf({ episodes }: TaskEvaluation, measure: Measure): readonly number[] {
  if (measure === 'gain') return episodeGains(episodes as readonly AnchoredReturn[])!;
  return episodes.map(({ score }) => score);
}

function episodesPlayed({ tasks }: Evaluation): string {
  return JSON.stringify(tasks.map(({ taskId, episodes }) => [taskId, episodes.map(({ seed }) => seed)]));
}

function describe(differences: readonly (readonly number[])[]) {
  const [low, high] = stratifiedBootstrap(differences, mean);
  const wins = differences.map((stratum) => stratum.map((difference) => (Math.sign(difference) + 1) / 2));
  return {
    /** Mean of (figure of the first - figure of the second), over the episodes, and its 95 % interval by the bootstrap. */
    mean: mean(differences.flat()),
    ci95: [low, high] as const,
    /** Share of the episodes in which the first did better; a tie counts half. */
    probability: mean(wins.flat()),
    probabilityCi95: stratifiedBootstrap(wins, mean),
    /** Verdict on the first policy; `undecided` when the interval contains 0. */
    verdict: low > 0 ? ('better' as const) : high < 0 ? ('worse' as const) : ('undecided' as const),
  };
}

function performanceProfile({ tasks }: Evaluation) {
  const scores = tasks.flatMap((task) => task.episodes.map((episode) => episode.score));
  return THRESHOLDS.map((threshold) => ({
    threshold,
    share: scores.filter((score) => score > threshold).length / scores.length,
  }));
}
