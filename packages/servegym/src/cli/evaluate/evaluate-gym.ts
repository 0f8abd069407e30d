import {
  createGymPolicy,
  type Evaluation,
  type EvaluationPlan,
  evaluatePolicy,
  type GymPolicy,
  listGymPolicies,
  loadGymPolicy,
  playableGym,
} from '@servegym/agents';
import {
  chooseGymTask,
  firstSeeds,
  GYM_TASK_IDS,
  inferenceGym,
  SEED_SPLITS,
  type SeedSplit,
} from '@servegym/environments';
import { decodeInputFile } from '../arguments/read-input-file.ts';
import { readGymOptions } from '../arguments/read-table.ts';
import { InputError } from '../input-error.ts';
import { showProgress } from '../output/progress.ts';
import type { EvaluationContext } from './evaluation-report.ts';

export interface GymEvaluationOptions {
  readonly task: string;
  readonly table?: string;
  readonly episodes: number;
  readonly split: string;
}

/** Plays and grades policies on the same traffic, on the table that comes with the package or on one's own. */
export async function evaluateGymPolicies(
  names: readonly string[],
  { task, table, episodes, split }: GymEvaluationOptions,
): Promise<{ readonly evaluations: readonly Evaluation[]; readonly context: EvaluationContext }> {
  if (!Object.hasOwn(SEED_SPLITS, split)) {
    throw new InputError(
      `expected a split of inferencegym, one of ${Object.keys(SEED_SPLITS).join(', ')}, got ${split}`,
    );
  }
  const environment = inferenceGym(await readGymOptions(table));
  const found = await Promise.all(names.map(findGymPolicy));
  const taskIds = tasksFor(
    task,
    GYM_TASK_IDS.filter((id) => found.every((policy) => policy.taskIds.includes(id))),
  );
  const seeds = firstSeeds(split as SeedSplit, episodes);
  const evaluations: Evaluation[] = [];
  for (const { policy } of found) {
    const plan: EvaluationPlan = {
      ...{ taskIds, seeds },
      onEpisode: ({ taskId }, finished, planned) =>
        showProgress(finished < planned ? `${taskId}: episode ${finished} of ${planned}` : ''),
    };
    evaluations.push(await evaluatePolicy(playableGym(environment), policy, plan));
  }
  return { evaluations, context: { environment, split, episodes } };
}

/** The policy of that name, or in that file, and the tasks that it can play. @throws InputError when there is neither */
export async function findGymPolicy(
  nameOrFile: string,
): Promise<{ readonly policy: GymPolicy; readonly taskIds: readonly number[] }> {
  const names = listGymPolicies().map((policy) => policy.name);
  if (names.includes(nameOrFile)) return { policy: createGymPolicy(nameOrFile), taskIds: GYM_TASK_IDS };
  if (!/[./\\]/.test(nameOrFile)) {
    throw new InputError(
      `expected a policy of inferencegym named one of ${names.join(', ')}, or a file that \`servegym train --env inferencegym\` wrote, got ${nameOrFile}`,
    );
  }
  const { policy, taskId } = await decodeInputFile(nameOrFile, loadGymPolicy);
  return { policy, taskIds: [taskId] };
}

function tasksFor(asked: string, playable: readonly number[]): readonly number[] {
  const tasks =
    asked === 'all' ? playable : playable.filter((id) => id === chooseGymTask({ task_id: asked }).id);
  if (tasks.length > 0) return tasks;
  const common = playable.length > 0 ? `play ${playable.join(', ')}` : 'have no task in common';
  throw new InputError(`expected policies that can play task ${asked}; these ${common}`);
}
