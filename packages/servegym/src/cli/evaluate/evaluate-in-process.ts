import {
  AGENTS,
  type Evaluation,
  evaluatePolicy,
  type PlayableEnvironment,
  type Policy,
  SHIFTED,
} from '@servegym/agents';
import {
  type FleetAction,
  type FleetObservation,
  type FleetScenario,
  firstSeeds,
  fleet,
  type GymAction,
  type GymObservation,
  inferencegym,
  type SeedSplit,
} from '@servegym/environments';
import { findFleetPolicy } from '../arguments/find-fleet-policy.ts';
import { loadFleetTask, loadTrace } from '../arguments/own-inputs.ts';
import { decodeInputFile } from '../arguments/read-input-file.ts';
import { readTable } from '../arguments/read-table.ts';
import { InputError } from '../input-error.ts';
import { showProgress } from '../output/progress.ts';
import type { EvaluationArguments } from './evaluation-options.ts';
import type { EvaluationContext } from './evaluation-report.ts';

/** The evaluations of a policy under each shift, or the one of a split. */
export type InProcessEvaluation = Evaluation | ReadonlyMap<string, Evaluation>;

/** Policies of an environment, the tasks that all of them play, and what they play them on. */
interface Played<Action, Observation> {
  readonly policies: readonly Policy<Action, Observation>[];
  readonly taskIds: readonly (string | number)[];
  /** Environments by the name of the shift; one alone without any. */
  readonly environments: ReadonlyMap<string, PlayableEnvironment<Action, Observation>>;
  readonly scenario?: FleetScenario;
}

/** Plays and grades policies of `inferencegym` or `fleet` on the same traffic, in this process. */
export async function evaluateInProcess(
  names: readonly string[],
  options: EvaluationArguments,
): Promise<InProcessEvaluations> {
  return options.env === 'fleet'
    ? evaluateAll(await openFleet(names, options), options)
    : evaluateAll(await openGym(names, options), options);
}

interface InProcessEvaluations {
  readonly evaluations: readonly InProcessEvaluation[];
  readonly context: EvaluationContext;
}

async function evaluateAll<Action, Observation>(
  { policies, taskIds, environments, scenario }: Played<Action, Observation>,
  { split, episodes }: EvaluationArguments,
): Promise<InProcessEvaluations> {
  const plan = {
    ...{ taskIds, seeds: firstSeeds(split === SHIFTED ? 'test' : (split as SeedSplit), episodes) },
    onEpisode: ({ taskId }: { taskId: string | number }, finished: number, planned: number) =>
      showProgress(finished < planned ? `${taskId}: episode ${finished} of ${planned}` : ''),
  };
  const evaluations: InProcessEvaluation[] = [];
  for (const policy of policies) {
    const shifted = new Map<string, Evaluation>();
    for (const [shift, environment] of environments) {
      shifted.set(shift, await evaluatePolicy(environment, policy, plan));
    }
    evaluations.push(split === SHIFTED ? shifted : [...shifted.values()][0]!);
  }
  const [environment] = environments.values();
  const context = { environment: environment!, split, episodes, ...(scenario && { scenario }) };
  return { evaluations, context };
}

async function openGym(
  names: readonly string[],
  { task, table, split }: EvaluationArguments,
): Promise<Played<GymAction, GymObservation>> {
  if (split === SHIFTED)
    throw new InputError(`expected a split of inferencegym, which has no shifts, got ${split}`);
  const environment = AGENTS.inferencegym.playable(await readTable(table));
  const found = await Promise.all(names.map(findGymPolicy));
  const common = inferencegym.tasks.shippedIds.filter((id) =>
    found.every((policy) => policy.taskIds.includes(id)),
  );
  return {
    policies: found.map(({ policy }) => policy),
    taskIds: tasksFor(task, common, () => inferencegym.choose({ task_id: task }).id),
    environments: new Map([['', environment]]),
  };
}

async function openFleet(
  names: readonly string[],
  { task, taskFile, trace, rateScale, profile, shift, split }: EvaluationArguments,
): Promise<Played<FleetAction, FleetObservation>> {
  const own = taskFile === undefined ? undefined : (await loadFleetTask(taskFile)).id;
  const found = await Promise.all(names.map(findFleetPolicy));
  const asked = own ?? task;
  const ids = fleet.tasks.ids().filter((id) => found.every(({ taskId = id }) => taskId === id));
  const taskIds = tasksFor(asked, ids, () => fleet.choose({ task_id: asked }).id);
  const given = {
    ...(trace !== undefined && { trace: (await loadTrace(trace)).name }),
    ...(rateScale !== undefined && { rate_scale: rateScale }),
    ...(profile !== undefined && { profile }),
    ...(shift !== undefined && { shift }),
  };
  for (const task_id of taskIds) fleet.choose({ ...given, task_id });
  const { task_id, ...scenario } = fleet.resetOptions().parse(given);
  const environments =
    split === SHIFTED
      ? fleet.shifts.map(
          (name) => [name, AGENTS.fleet.playable({ scenario: { ...scenario, shift: name } })] as const,
        )
      : [['', AGENTS.fleet.playable({ scenario })] as const];
  const policies = found.map(({ policy }) => policy);
  return { policies, taskIds, environments: new Map(environments), scenario };
}

/** The policy of that name, or in that file, and the tasks that it can play. @throws InputError when there is neither */
export async function findGymPolicy(
  nameOrFile: string,
): Promise<{ readonly policy: Policy<GymAction, GymObservation>; readonly taskIds: readonly number[] }> {
  const names = AGENTS.inferencegym.policies.map((policy) => policy.name);
  if (names.includes(nameOrFile))
    return { policy: AGENTS.inferencegym.createPolicy(nameOrFile), taskIds: inferencegym.tasks.shippedIds };
  if (!/[./\\]/.test(nameOrFile)) {
    throw new InputError(
      `expected a policy of inferencegym named one of ${names.join(', ')}, or a file that \`servegym train --env inferencegym\` wrote, got ${nameOrFile}`,
    );
  }
  const { policy, taskId } = await decodeInputFile(nameOrFile, AGENTS.inferencegym.loadPolicy);
  return { policy, taskIds: [taskId] };
}

/** The tasks to play, of those that all policies can. @param find the id of the one that was asked for */
function tasksFor<Id extends string | number>(
  asked: string,
  playable: readonly Id[],
  find: () => string | number,
): readonly Id[] {
  const tasks = asked === 'all' ? playable : playable.filter((id) => id === find());
  if (tasks.length > 0) return tasks;
  const common = playable.length > 0 ? `play ${playable.join(', ')}` : 'have no task in common';
  throw new InputError(`expected policies that can play task ${asked}; these ${common}`);
}
