import type { ServeTask } from '@servegym/environments';
import {
  type CheckEffort,
  type CheckResult,
  CheckRun,
  type TaskCheck,
} from '../../core/checks/check-result.ts';
import { checkExploits } from './exploits.ts';
import { checkGame } from './game.ts';
import { checkPhysics } from './physics.ts';
import { checkReaction } from './reaction.ts';

/**
 * Looks whether a task is a sound simulation and a game worth learning: conservation, Little's law, monotonicity,
 * whether the server answers to its knobs, whether tuning and adapting pay, and whether it can be cheated. The task is
 * one that this process knows (`addServeTask`). Deterministic.
 */
export async function checkTask(
  task: ServeTask,
  effort: CheckEffort,
  onGroup?: (results: readonly CheckResult[]) => void,
): Promise<TaskCheck> {
  const run = new CheckRun(onGroup);
  await run.add(checkPhysics(task, effort));
  await run.add(checkReaction(task, effort));
  const game = await checkGame(task, effort);
  await run.add(game.results);
  await run.add(await checkExploits(task, game.bestConstant, effort));
  return {
    taskId: task.id,
    difficulty: task.difficulty,
    passed: run.passed,
    results: run.results,
    bestConstant: game.bestConstant,
  };
}
