import type { ServeAction, ServeTask } from '@servegym/environments';
import type { CheckEffort, CheckResult } from './check-result.ts';
import { checkExploits } from './exploits.ts';
import { checkGame } from './game.ts';
import { checkPhysics } from './physics.ts';
import { checkReaction } from './reaction.ts';

/** What the checks of a task came to. */
export interface TaskCheck {
  readonly task: ServeTask;
  /** Whether no check has failed. */
  readonly passed: boolean;
  readonly results: readonly CheckResult[];
  /** The best configuration that never changes, of a short search. */
  readonly bestConstant: ServeAction;
}

/**
 * Looks whether a task is a sound simulation and a game worth learning: conservation, Little's law, monotonicity,
 * whether the server answers to its knobs, whether tuning and adapting pay, and whether it can be cheated. The task is
 * one that this process knows (`addServeTask`). Deterministic.
 */
export async function checkTask(
  task: ServeTask,
  effort: CheckEffort,
  onGroup: (results: readonly CheckResult[]) => void = () => {},
): Promise<TaskCheck> {
  const results: CheckResult[] = [];
  const add = async (group: readonly CheckResult[]) => {
    results.push(...group);
    onGroup(group);
    // Let what was found be shown before the next group is played.
    await new Promise((resolve) => setImmediate(resolve));
  };
  await add(checkPhysics(task, effort));
  await add(checkReaction(task, effort));
  const game = await checkGame(task, effort);
  await add(game.results);
  await add(await checkExploits(task, game.bestConstant));
  return {
    task,
    passed: results.every(({ outcome }) => outcome !== 'fail'),
    results,
    bestConstant: game.bestConstant,
  };
}
