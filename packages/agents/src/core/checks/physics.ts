import type { CheckEffort, CheckResult } from './check-result.ts';
import { type PlayedTask, wanderingActions } from './checked-task.ts';

/** Means over few seeds may be this much out of order by chance. */
const ORDER_TOLERANCE = 0.02;

/** No request is lost or made up, whatever is done. */
export function conservation<Action extends object>(
  task: PlayedTask<Action>,
  { seeds }: CheckEffort,
): CheckResult {
  let windows = 0;
  let mismatches = 0;
  for (const seed of seeds) {
    for (const actionOf of [() => task.defaultAction, wanderingActions(task, seed)]) {
      const episode = task.start(seed);
      while (!episode.done) {
        episode.step(actionOf());
        windows++;
        if (episode.unaccounted() !== 0) mismatches++;
      }
    }
  }
  return {
    id: 'conservation',
    group: 'physics',
    title: 'arrived = served + failed + refused + in the server, after every window',
    outcome: mismatches === 0 ? 'pass' : 'fail',
    figures: { windows, mismatches },
  };
}

/** An episode depends on its seed and actions alone, also when it is left for others and brought back. */
export function repeatability<Action extends object>(
  task: PlayedTask<Action>,
  { seeds: [seed = 0] }: CheckEffort,
): CheckResult {
  const first = trajectory(task, seed, wanderingActions(task, seed));
  const repeated = trajectory(task, seed, wanderingActions(task, seed)) === first;
  const restored = trajectory(task, seed, wanderingActions(task, seed), 'forking') === first;
  const another = trajectory(task, seed + 1, wanderingActions(task, seed)) !== first;
  return {
    id: 'repeatability',
    group: 'physics',
    title:
      'the same seed and actions give the same bits, also after a return to an earlier state; another seed does not',
    outcome: repeated && restored && another ? 'pass' : 'fail',
    figures: { repeated: `${repeated}`, restored: `${restored}`, another_seed_differs: `${another}` },
  };
}

/** Rewards and observations of an episode as text. */
export function trajectory<Action extends object>(
  task: PlayedTask<Action>,
  seed: number,
  actionOf: () => Action,
  through?: 'forking',
): string {
  let episode = task.start(seed);
  const lines: string[] = [];
  while (!episode.done) {
    if (through && episode.window % 5 === 4) {
      const back = episode.fork();
      back().step(task.defaultAction);
      episode = back();
    }
    lines.push(JSON.stringify([episode.step(actionOf()), episode.observation()]));
  }
  return lines.join();
}

/** A check that each value is at least the one before it. `advice` says what to do where it is not. */
export function orderedMeans({
  id,
  title,
  values,
  names,
  advice,
}: {
  readonly id: string;
  readonly title: string;
  readonly values: readonly number[];
  readonly names: readonly string[];
  readonly advice?: string;
}): CheckResult {
  const holds = values.every((value, i) => i === 0 || value >= values[i - 1] * (1 - ORDER_TOLERANCE));
  return {
    id,
    group: 'physics',
    title,
    outcome: holds ? 'pass' : 'fail',
    figures: Object.fromEntries(names.map((name, i) => [name, values[i]])),
    ...(!holds && advice !== undefined && { advice }),
  };
}
