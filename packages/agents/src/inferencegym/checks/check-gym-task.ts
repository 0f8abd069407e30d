import type { GymTask, GymWorld } from '@servegym/environments';
import {
  type CheckEffort,
  type CheckResult,
  CheckRun,
  type TaskCheck,
} from '../../core/checks/check-result.ts';
import { bestGymConstant } from './best-gym-constant.ts';
import { checkGymExploits } from './gym-exploits.ts';
import { checkGymGame } from './gym-game.ts';
import { checkGymPhysics } from './gym-physics.ts';
import { checkGymReaction } from './gym-reaction.ts';

/**
 * Looks whether a task of `inferencegym` is a sound simulation and a game worth learning on a table: conservation,
 * monotonicity, whether the server answers to its knobs, whether tuning and adapting pay, and whether it can be cheated.
 * Deterministic.
 */
export async function checkGymTask(
  world: GymWorld,
  task: GymTask,
  effort: CheckEffort,
  onGroup?: (results: readonly CheckResult[]) => void,
): Promise<TaskCheck> {
  const run = new CheckRun(onGroup);
  await run.add(checkGymPhysics(world, task, effort));
  const constant = bestGymConstant(world, task, effort.traces.many);
  await run.add(checkGymReaction(world, task, effort, constant));
  await run.add(checkGymGame(world, task, effort, constant));
  await run.add(await checkGymExploits(world, task, constant));
  return {
    taskId: task.id,
    difficulty: task.difficulty,
    passed: run.passed,
    results: run.results,
    bestConstant: { ...constant },
  };
}
