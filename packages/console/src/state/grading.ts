import type { PageSignals } from './page-signals.ts';
import type { Troubles } from './troubles.ts';

/** Answers what asks the server for the grades of the runs that are over and have none yet. */
export function createGrading({ runs, abilities }: PageSignals, { report }: Troubles): () => Promise<void> {
  return async function score(): Promise<void> {
    const ungraded = runs.value.filter((one) => one.latest.value?.done && !one.grade.value);
    if (!abilities.value.grader || ungraded.length === 0) return;
    try {
      await Promise.all(ungraded.map((one) => one.score()));
    } catch (error) {
      report(error, 'Ask for the score again', () => void score());
    }
  };
}
