import {
  type CheckEffort,
  type CheckResult,
  judge,
  type PlayedTask,
  wanderingActions,
} from './task-check.ts';

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
  return judge({
    ...{ id: 'conservation', group: 'physics', holds: mismatches === 0, figures: { windows, mismatches } },
    title: 'arrived = served + failed + refused + in the server, after every window',
  });
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
  return judge({
    ...{ id: 'repeatability', group: 'physics', holds: repeated && restored && another },
    title:
      'the same seed and actions give the same bits, also after a return to an earlier state; another seed does not',
    figures: { repeated: `${repeated}`, restored: `${restored}`, another_seed_differs: `${another}` },
  });
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

/** Figures that must not fall from one to the next, by name. `advice` says what to do where they do. */
export function orderedMeans(
  id: string,
  title: string,
  figures: Readonly<Record<string, number>>,
  advice?: string,
): CheckResult {
  const values = Object.values(figures);
  const holds = values.every((value, i) => i === 0 || value >= values[i - 1] * (1 - ORDER_TOLERANCE));
  return judge({ id, group: 'physics', title, holds, figures, ...(advice !== undefined && { advice }) });
}

/** A figure for each of some values. */
export function figuresOver<Value>(
  values: readonly Value[],
  nameOf: (value: Value) => string,
  figureOf: (value: Value) => number,
): Record<string, number> {
  return Object.fromEntries(values.map((value) => [nameOf(value), figureOf(value)]));
}
