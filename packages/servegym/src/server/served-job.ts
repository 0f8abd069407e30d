import {
  type AsyncPolicy,
  type PolicyEpisode,
  type PolicyStep,
  playEpisode,
  type SharedInputs,
  takeInputs,
} from '@servegym/agents';
import { findEnvironment } from '@servegym/environments';
import type { JobContext, Json } from '@servegym/jobs';
import type { Caller, EpisodeRecord } from '@servegym/openenv';
import { type OpenedEnvironment, openEnvironment } from './open-environment.ts';

/** An environment of a server, as its jobs know it. */
export interface ServedEnvironment {
  /** `llmserve`, `fleet`, `inferencegym`, or the path of a module that exports an environment. */
  readonly name: string;
  readonly version: string;
  readonly tableFile?: string | undefined;
  /** Task and trace that the episode plays, where they are of the server's own. */
  readonly shared?: SharedInputs;
}

/** Long work of a server: to grade an episode, to play and grade a baseline agent, or to choose an action. */
export type ServedWork =
  | { readonly kind: 'grade'; readonly record: EpisodeRecord }
  | Readonly<{ kind: 'play-baseline'; agent: string; taskId: string | number; seed: number }>
  | {
      readonly kind: 'choose-action';
      readonly policy: string;
      readonly episode: PolicyEpisode;
      /** All steps of the episode so far; the last is the one to choose for. */
      readonly steps: readonly PolicyStep<unknown, unknown>[];
    };

export async function runJob(input: Json, context: JobContext): Promise<Json> {
  const { environment, reset, work } = input as unknown as {
    readonly environment: ServedEnvironment;
    readonly reset: Readonly<Record<string, unknown>>;
    readonly work: ServedWork;
  };
  const { definition, policies } = await openServed(environment, reset, context);
  switch (work.kind) {
    case 'grade':
      return (await definition.grade!(work.record)) as unknown as Json;
    case 'play-baseline': {
      const { agent, taskId, seed } = work;
      const initialAction = policies.initialAction({ task_id: taskId, seed });
      const played = playBaseline(definition, policies.create(agent), { taskId, seed, initialAction });
      return (await played) as unknown as Json;
    }
    case 'choose-action':
      return (await chooseAction(environment, policies, work)) as unknown as Json;
  }
}

const opened = new Map<string, Promise<OpenedEnvironment>>();

/** Opens the environment of a job, on its thread. @throws Error when it is no longer that of the server */
async function openServed(
  { name, version, tableFile, shared = {} }: ServedEnvironment,
  reset: Readonly<Record<string, unknown>>,
  context: JobContext,
): Promise<OpenedEnvironment> {
  const entry = findEnvironment(name);
  if (entry?.takes.includes('task')) {
    await takeInputs(entry, shared, reset, context);
    return openEnvironment(name);
  }
  const environment = opened.get(name) ?? openEnvironment(name, { tableFile });
  opened.set(name, environment);
  const { definition } = await environment;
  if (definition.version !== version)
    throw new Error(
      `Expected ${definition.name} ${version}, which this server plays, but its file now has ${definition.version}. Start the server again.`,
    );
  return environment;
}

/** Plays an agent on a fresh instance of an environment with a grader, and grades what it did. */
export async function playBaseline(
  definition: OpenedEnvironment['definition'],
  policy: AsyncPolicy<unknown, unknown>,
  episode: { readonly taskId: string | number; readonly seed: number; readonly initialAction: unknown },
  caller?: Caller,
) {
  const environment = definition.create();
  try {
    const { actions, return: total } = await playEpisode(environment, policy, episode);
    const reset = { task_id: episode.taskId, seed: episode.seed };
    const { score, breakdown, feedback } = await definition.grade!({ reset, actions }, caller);
    const text = JSON.stringify(actions[0]);
    const isConstant = actions.length > 0 && actions.every((action) => JSON.stringify(action) === text);
    /** The action that was kept throughout; `null` when the agent changed it. */
    const configuration = isConstant ? (actions[0] as object) : null;
    return { score, breakdown, feedback, configuration, steps: actions.length, total_reward: total };
  } finally {
    await environment.close?.();
  }
}

export interface ChosenAction {
  readonly action: unknown;
  readonly explanation?: unknown;
  /** The actions of the whole episode, of a policy that has planned them. */
  readonly plan?: readonly unknown[];
}

/** A policy that waits on this thread for the next step of its episode, and the steps that it has seen, as JSON. */
let kept:
  | { readonly key: string; readonly policy: AsyncPolicy<unknown, unknown>; seen: string[] }
  | undefined;

/** Chooses an action. A policy that is not on this thread any more is shown the steps that it has to know. */
async function chooseAction(
  environment: ServedEnvironment,
  policies: OpenedEnvironment['policies'],
  { policy: name, episode, steps }: Extract<ServedWork, { kind: 'choose-action' }>,
): Promise<ChosenAction> {
  const key = JSON.stringify([environment, name, episode]);
  const before = steps.slice(0, -1).map((step) => JSON.stringify(step));
  let current = kept;
  // A policy that fails does not go on.
  kept = undefined;
  const isBeginning =
    current !== undefined &&
    current.seen.length <= before.length &&
    current.seen.every((step, index) => step === before[index]);
  if (current?.key !== key || !isBeginning) {
    current = { key, policy: policies.create(name), seen: [] };
    current.policy.reset(episode);
  }
  const { policy, seen } = current;
  for (let index = seen.length; index < before.length; index++) {
    const step = steps[index];
    if (policy.watch) policy.watch(step, steps[index + 1].previousAction);
    else await policy.act(step);
  }
  const step = steps.at(-1)!;
  const action = await policy.act(step);
  current.seen = [...before, JSON.stringify(step)];
  kept = current;
  const { plan } = policy as { readonly plan?: readonly unknown[] };
  return { action, explanation: policy.explain?.(), plan };
}
