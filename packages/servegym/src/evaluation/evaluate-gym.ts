import {
  createGymPolicy,
  evaluatedGym,
  evaluatePolicy,
  type GymPolicy,
  listGymPolicies,
  loadGymPolicy,
  TensorFileError,
  TrainedPolicyError,
} from '@servegym/agents';
import {
  chooseGymTask,
  GYM_TASK_IDS,
  inferenceGym,
  SEED_SPLITS,
  type SeedSplit,
} from '@servegym/environments';
import { InputError } from '../input-error.ts';
import { readInputBytes } from '../read-input-file.ts';
import { readGymOptions } from '../read-table.ts';
import { evaluationJson, evaluationTable } from '../reports/evaluation-report.ts';
import { progressOnTerminal } from './progress-on-terminal.ts';

export interface EvaluateGymOptions {
  readonly agent: string;
  readonly task: string;
  readonly table?: string;
  readonly episodes: number;
  readonly split: string;
  readonly json: boolean;
}

/** Plays and grades a policy of `inferencegym`, on the table that comes with the package or on one's own. */
export async function evaluateGym(options: EvaluateGymOptions): Promise<void> {
  const { agent, task, table, episodes, split, json } = options;
  if (!Object.hasOwn(SEED_SPLITS, split)) {
    throw new InputError(
      `expected a split of inferencegym, one of ${Object.keys(SEED_SPLITS).join(', ')}, got ${split}`,
    );
  }
  const environment = inferenceGym(await readGymOptions(table));
  const { policy, taskIds } = await findGymPolicy(agent);
  const { first } = SEED_SPLITS[split as SeedSplit];
  const evaluation = await evaluatePolicy(evaluatedGym(environment), policy, {
    taskIds: tasksFor(task, taskIds),
    seeds: Array.from({ length: episodes }, (_, i) => first + i),
    ...progressOnTerminal(),
  });
  const context = { environment, split, episodes };
  console.log(
    json
      ? JSON.stringify(evaluationJson(evaluation, context), null, 2)
      : evaluationTable(evaluation, context),
  );
}

/** The policy of that name, or in that file. @throws InputError when there is neither. */
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
  const bytes = await readInputBytes(nameOrFile);
  try {
    const { policy, taskId } = loadGymPolicy(bytes);
    return { policy, taskIds: [taskId] };
  } catch (error) {
    if (!(error instanceof TensorFileError || error instanceof TrainedPolicyError)) throw error;
    throw new InputError(`${nameOrFile}: ${error.message}`);
  }
}

function tasksFor(asked: string, playable: readonly number[]): readonly number[] {
  if (asked === 'all') return playable;
  const { id } = chooseGymTask({ task_id: asked });
  if (playable.includes(id)) return [id];
  throw new InputError(`expected a policy for task ${id}, got one for task ${playable.join(', ')}`);
}
