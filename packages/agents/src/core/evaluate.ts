import {
  ENVIRONMENTS,
  type EnvironmentId,
  findEnvironment,
  type RegisteredEnvironment,
  SEED_SPLITS,
} from '@servegym/environments';
import type { JobContext, JobEngine, Json } from '@servegym/jobs';
import { EnvironmentError } from '@servegym/openenv/definition';
import { ANY_SERVER } from '../learning/learners.ts';
import { AGENTS, type EnvironmentAgents } from '../registry.ts';
import { type Evaluation, evaluationOf, type PlayedTask, playTask } from './evaluate-policy.ts';
import { type JobInputs, jobsOn, type PlayInputs, takeInputs } from './playable.ts';
import type { Policy } from './policy.ts';

/** Source of the seeds of an evaluation; the last three are the test seeds in each of several scenarios. */
export const EVALUATION_SPLITS = [...Object.keys(SEED_SPLITS), 'shifted', 'held-out', 'unprofiled'] as const;

/** The scenarios of such a split by name; `undefined` for the others. */
export function scenariosOf(id: EnvironmentId, split: string): Readonly<Record<string, object>> | undefined {
  const { shifts, heldOut = {} } = agentsOf(id).environment;
  if (split === 'held-out') return heldOut;
  if (split === 'unprofiled') {
    const without = { server_from: 'metrics' };
    return Object.fromEntries(Object.entries(heldOut).map(([name, of]) => [name, { ...of, ...without }]));
  }
  return split === 'shifted' ? Object.fromEntries(shifts.map((shift) => [shift, { shift }])) : undefined;
}

/** The agents of an environment, for those who ask nothing that one alone has. */
export function agentsOf(
  id: EnvironmentId,
): EnvironmentAgents & { readonly environment: RegisteredEnvironment } {
  // A policy of an environment meets only this environment's observations.
  return { ...(AGENTS[id] as unknown as EnvironmentAgents), environment: findEnvironment(id)! };
}

/** A policy as somebody named it, and the tasks that it can play. */
export interface FoundPolicy {
  readonly policy: Policy<object, object>;
  /** Its name in the catalogue, or its file: jobs load it from there. */
  readonly source: string | Uint8Array;
  readonly taskIds: readonly (string | number)[];
}

/** True for a word that names a file, and no policy of a catalogue. */
export function isPolicyFile(word: string): boolean {
  return /[./\\]/.test(word.split(':')[0]!);
}

/**
 * The policy of that name, or in that file of a training.
 * @throws EnvironmentError `UNKNOWN_POLICY`, `POLICY_...` or `TENSOR_FILE`
 */
export function findPolicy(id: EnvironmentId, source: string | Uint8Array): FoundPolicy {
  const { environment, shipped, createPolicy, loadPolicy } = agentsOf(id);
  if (typeof source === 'string') {
    const { tasks } = environment;
    return {
      source,
      policy: createPolicy(source),
      taskIds: shipped.includes(source) ? tasks.shippedIds : tasks.ids(),
    };
  }
  if (loadPolicy === undefined) {
    throw new EnvironmentError('POLICY_FILE', `Expected the name of a policy: nothing is learned on ${id}`);
  }
  const { policy, taskId } = loadPolicy(source);
  const taskIds = taskId === ANY_SERVER ? environment.tasks.ids() : [taskId];
  return { source, policy, taskIds };
}

/**
 * The tasks to play: the one asked for, or `all` that every policy can play.
 * @throws EnvironmentError `UNKNOWN_TASK` when there is no such task, `OTHER_TASK` when a policy cannot play it
 */
export function tasksToPlay(
  id: EnvironmentId,
  asked: string,
  policies: readonly FoundPolicy[],
): readonly (string | number)[] {
  const known = agentsOf(id).environment.tasks.ids();
  const wanted = asked === 'all' ? known : known.filter((taskId) => String(taskId) === asked);
  if (wanted.length === 0) {
    throw new EnvironmentError(
      'UNKNOWN_TASK',
      `Expected a task of ${id}, all or one of ${known.join(', ')}, got ${asked}`,
    );
  }
  const tasks = wanted.filter((taskId) => policies.every(({ taskIds }) => taskIds.includes(taskId)));
  if (tasks.length > 0) return tasks;
  const trained = policies.flatMap(({ policy, taskIds }) =>
    taskIds.length < known.length ? [`${policy.name} for ${taskIds.join(', ')}`] : [],
  );
  throw new EnvironmentError(
    'OTHER_TASK',
    `Expected policies that can play ${asked === 'all' ? 'the same task' : asked}, got ${trained.join(' and ')}`,
  );
}

/** Episodes to play, and the policy that plays them. */
export interface PlayPlan {
  readonly environment: EnvironmentId;
  readonly policy: FoundPolicy;
  readonly taskIds: readonly (string | number)[];
  /** The same for each task. */
  readonly seeds: readonly number[];
  readonly inputs?: PlayInputs | undefined;
  /** Called with the share that is done. */
  readonly onProgress?: ((share: number) => void) | undefined;
}

/** Plays and grades a policy: an episode a job, or all in this process without `jobs`. */
export async function evaluate(plan: PlayPlan, jobs?: JobEngine): Promise<Evaluation> {
  const { policy, taskIds, seeds } = plan;
  const played = await playAll(plan, jobs);
  return evaluationOf(
    policy.policy.name,
    taskIds.map((taskId, t): PlayedTask => {
      const own = played.slice(t * seeds.length, (t + 1) * seeds.length);
      return {
        taskId,
        episodes: own.flatMap((each) => each.episodes),
        wallSeconds: own.reduce((sum, { wallSeconds }) => sum + wallSeconds, 0),
      };
    }),
  );
}

/** Plays and grades a policy in each of some scenarios. */
export async function evaluateScenarios(
  plan: PlayPlan,
  scenarios: Readonly<Record<string, object>>,
  jobs?: JobEngine,
): Promise<ReadonlyMap<string, Evaluation>> {
  const evaluations = new Map<string, Evaluation>();
  for (const [name, scenario] of Object.entries(scenarios)) {
    const inputs = { ...plan.inputs, scenario: { ...plan.inputs?.scenario, ...scenario } };
    evaluations.set(name, await evaluate({ ...plan, inputs }, jobs));
  }
  return evaluations;
}

/** An episode for a thread or another machine. */
interface EpisodeInput extends JobInputs {
  readonly environment: EnvironmentId;
  /** Name of the policy; `null` for one of a file. */
  readonly policy: string | null;
  readonly taskId: string | number;
  readonly seed: number;
  readonly scenario: Readonly<Record<string, unknown>>;
}

/** The graded episodes, task by task. */
async function playAll(plan: PlayPlan, jobs: JobEngine | undefined): Promise<PlayedTask[]> {
  const { environment, policy: found, taskIds, seeds, inputs = {}, onProgress } = plan;
  if (jobs === undefined) {
    const episodes = taskIds.flatMap((taskId) => seeds.map((seed) => ({ taskId, seed })));
    const results: PlayedTask[] = [];
    for (const [i, { taskId, seed }] of episodes.entries()) {
      const report = (share: number) => onProgress?.((i + share) / episodes.length);
      results.push(await playOne(environment, found.policy, inputs, taskId, seed, report));
      report(1);
    }
    return results;
  }
  const [policy, file] = typeof found.source === 'string' ? [found.source] : [null, found.source];
  const { scenario = {} } = inputs;
  const ofTasks = taskIds.map((taskId) => {
    const episodes = seeds.map((seed): Omit<EpisodeInput, keyof JobInputs> => {
      return { environment, policy, taskId, seed, scenario };
    });
    return jobsOn(jobs, 'play-episodes', ENVIRONMENTS[environment], { taskId, ...inputs }, episodes, file);
  });
  const list = (await Promise.all(ofTasks)).flat();
  const results = await jobs.run(list, { onProgress: ({ share }) => onProgress?.(share) });
  return results as unknown as PlayedTask[];
}

/** The job `play-episodes`: answers a `PlayedTask` of one episode. */
export async function runJob(input: Json, context: JobContext): Promise<Json> {
  const { environment, policy, taskId, seed, scenario, shared, file } = input as unknown as EpisodeInput;
  const inputs = await takeInputs(ENVIRONMENTS[environment], shared, scenario, context);
  const found = findPolicy(environment, policy ?? context.shared(file!));
  const report = (share: number) => context.report(share);
  return (await playOne(environment, found.policy, inputs, taskId, seed, report)) as unknown as Json;
}

async function playOne(
  environment: EnvironmentId,
  policy: Policy<object, object>,
  inputs: PlayInputs,
  taskId: string | number,
  seed: number,
  report: (share: number) => void,
): Promise<PlayedTask> {
  const { playable, environment: entry } = agentsOf(environment);
  const windows = entry.steps(entry.tasks.find(taskId)!);
  let seen = 0;
  // Each tenth is reported, as planners take long for a window.
  const onWindow = () => {
    const tenth = Math.floor((10 * seen) / windows);
    seen++;
    if (Math.floor((10 * seen) / windows) > tenth) report(seen / windows);
  };
  return playTask(playable(inputs), policy, taskId, [seed], { onWindow });
}
