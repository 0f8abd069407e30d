import { createHash } from 'node:crypto';
import {
  type Feature,
  type FleetAction,
  type FleetTask,
  fleet,
  type GymAction,
  type GymTask,
  inferencegym,
  llmserve,
  type ServeAction,
  type ServeTask,
  Tasks,
} from '@servegym/environments';
import { EnvironmentError } from '@servegym/openenv/definition';
import type { ZodType } from 'zod';
import type { Policy } from '../core/policy.ts';
import { OUTLOOK_FEATURES } from '../policies/steady-state.ts';
import { type ActionBins, ActionCodec, FeatureEncoder, type TrainingNote } from './learning-environment.ts';
import { type ActorWeights, decodeActor, encodeActor, TrainedActor } from './trained-actor.ts';

/** Part of a registered environment by which the policies that are trained on it are told from others. */
export interface TrainedOn<Task> {
  readonly id: string;
  readonly version: string;
  readonly tasks: {
    find(id: string): Task | undefined;
    ids(): readonly (string | number)[];
    isOwn(id: string | number): boolean;
  };
}

/** The task of this id. @throws EnvironmentError `UNKNOWN_TASK` */
export function knownTask<Task>({ tasks }: Pick<TrainedOn<Task>, 'tasks'>, taskId: string | number): Task {
  const task = tasks.find(String(taskId));
  if (task !== undefined) return task;
  const got = JSON.stringify(taskId);
  throw new EnvironmentError(
    'UNKNOWN_TASK',
    `Expected a task named one of ${tasks.ids().join(', ')}, got ${got}`,
  );
}

/** Entries of the file of a policy that say what it is for. @throws EnvironmentError `UNKNOWN_TASK` */
export function trainedFor<Task extends object>(environment: TrainedOn<Task>, taskId: string | number) {
  const { id, version, tasks } = environment;
  const task = knownTask(environment, taskId);
  return {
    ...{ environment: id, version, task: String(taskId) },
    // For a task of one's own, stands for all that is played; the version stands for that of the others.
    ...(tasks.isOwn(taskId) && { task_digest: taskDigest(task) }),
  };
}

/** A task by its name on the wire. */
interface Identified {
  readonly id: string | number;
}

/**
 * The task that the file of a policy names.
 * @throws EnvironmentError `POLICY_MISMATCH` when the policy is for another environment or version, `POLICY_TASK` when this
 *   process does not know the task, or knows another one of this id
 */
function findTrainedTask<Task extends Identified>(
  { id, version, tasks }: TrainedOn<Task>,
  trained: Readonly<Record<string, unknown>>,
): Task {
  requireSame('environment', id, trained.environment);
  requireSame(`version of ${id}`, version, trained.version);
  const task = tasks.find(String(trained.task));
  if (task === undefined) {
    throw new EnvironmentError(
      'POLICY_TASK',
      `Expected a policy for one of ${tasks.ids().join(', ')}, got one for ${trained.task}: if that is a task of your own, give its file as well`,
    );
  }
  if (tasks.isOwn(task.id) && trained.task_digest !== taskDigest(task)) {
    throw new EnvironmentError(
      'POLICY_TASK',
      `Expected a policy for the task ${task.id} with the digest ${taskDigest(task)}, got one for ${trained.task_digest ?? 'none'}: the file of the task is not what the policy was trained on. Give that file, or train anew on this one`,
    );
  }
  return task;
}

/** Of what is played: what only people read, and how hard the task is said to be, may change. */
function taskDigest(task: object): string {
  const { name: _, description: __, difficulty: ___, ...played } = task as Readonly<Record<string, unknown>>;
  return createHash('sha256').update(JSON.stringify(played)).digest('hex').slice(0, 16);
}

/** @throws EnvironmentError `POLICY_MISMATCH` when `got` is not `expected` */
function requireSame(what: string, expected: string, got: unknown): void {
  if (got === expected) return;
  throw new EnvironmentError(
    'POLICY_MISMATCH',
    `Expected a policy for the ${what} ${expected}, got ${got}: train it anew`,
  );
}

/** @throws EnvironmentError `OTHER_TASK` when a policy that was trained for one task is to play another */
export function requireTask(trained: string | number, asked: string | number): void {
  if (String(asked) !== String(trained)) throw otherTask(trained, asked);
}

export function otherTask(trained: string | number, asked: string | number): EnvironmentError {
  return new EnvironmentError(
    'OTHER_TASK',
    `Expected the task ${trained} that the policy was trained for, got ${asked}`,
  );
}

/** An environment whose policies are learned: what files of networks say of it, and what their numbers stand for. */
export interface Learner<Action extends object, Task extends Identified> {
  readonly environment: TrainedOn<Task> & { readonly features: readonly Feature[] };
  /** A head for each knob that a task leaves free. */
  codec(task: Task): ActionCodec<Action>;
  /** Bins as files have them. Default: those of the free knobs. */
  readonly bins?: object;
}

/** Codecs of an environment, which says for each knob whether its nearest bin is found by ratio. */
function codecsOf<Action extends object>({
  bins,
  knobs,
  actionSchema: { shape },
}: {
  readonly bins: ActionBins<Action>;
  readonly knobs: readonly (keyof Action & string)[];
  readonly actionSchema: { readonly shape: Readonly<Record<string, ZodType>> };
}) {
  const byRatio = knobs.filter((knob) => shape[knob]!.meta()?.bins_by === 'ratio');
  return (free: readonly (keyof Action & string)[], standard: Action) =>
    new ActionCodec(bins, free, standard, byRatio);
}

const serveCodec = codecsOf<ServeAction>(llmserve);
export const SERVE_LEARNER: Learner<ServeAction, ServeTask> = {
  environment: llmserve,
  codec: (task) => serveCodec(llmserve.activeKnobs(task), task.defaultAction),
};

/** Stands for the task in files of policies that run any server of `llmserve`. */
export const ANY_SERVER = 'any';
/** Policies that run any server, on any task: all knobs, and windows in units of the server. */
export const ANY_SERVER_LEARNER: Learner<ServeAction, ServeTask> = {
  environment: {
    ...{ id: llmserve.id, version: llmserve.version },
    features: [...llmserve.features.filter(({ one_server }) => !one_server), ...llmserve.serverFeatures],
    tasks: new Tasks({ [ANY_SERVER]: { ...llmserve.tasks.shipped.bursty_workload, id: ANY_SERVER } }),
  },
  codec: (task) => SERVE_LEARNER.codec({ ...task, maskedKnobs: undefined }),
};

/** Policies that choose the precision on any server, and leave the rest to its steady state. */
export const PRECISION_LEARNER: Learner<ServeAction, ServeTask> = {
  environment: {
    ...ANY_SERVER_LEARNER.environment,
    features: [...ANY_SERVER_LEARNER.environment.features, ...OUTLOOK_FEATURES],
  },
  codec: (task) =>
    SERVE_LEARNER.codec({
      ...task,
      maskedKnobs: llmserve.knobs.filter((knob) => knob !== 'quantization_tier'),
    }),
};

const fleetCodec = codecsOf<FleetAction>(fleet);
/** Stands for the task in files of policies that scale any fleet. */
const ANY_FLEET: FleetTask = { ...fleet.tasks.shipped.diurnal, id: ANY_SERVER };
export const FLEET_LEARNER: Learner<FleetAction, FleetTask> = {
  environment: {
    ...{ id: fleet.id, version: fleet.version, features: fleet.features },
    tasks: {
      find: (id) => (id === ANY_SERVER ? ANY_FLEET : fleet.tasks.find(id)),
      ids: () => fleet.tasks.ids(),
      isOwn: (id) => id !== ANY_SERVER && fleet.tasks.isOwn(id),
    },
  },
  codec(task) {
    const idle = fleet.idleKnobs(task);
    const free = fleet.knobs.filter((knob) => !idle.includes(knob));
    return fleetCodec(free, task.defaultAction);
  },
};

const gymCodec = codecsOf(inferencegym as typeof inferencegym & { bins: ActionBins<GymAction> });
export const GYM_LEARNER: Learner<GymAction, GymTask> = {
  environment: inferencegym,
  bins: inferencegym.bins,
  codec: ({ activeKnobs }) => gymCodec(activeKnobs, inferencegym.defaultAction),
};

/** A network that has been trained on a task. */
export interface TrainedNetwork {
  readonly taskId: string | number;
  readonly weights: ActorWeights;
  /** Origin, for people: algorithm, steps, seed. */
  readonly training: TrainingNote;
}

/** Metadata of the file of a network. @throws EnvironmentError `UNKNOWN_TASK` */
export function networkMetadata<Action extends object, Task extends Identified>(
  { environment, codec, bins }: Learner<Action, Task>,
  taskId: string | number,
): Record<string, string> {
  const trained = trainedFor(environment, taskId);
  const task = environment.tasks.find(String(taskId))!;
  return { ...trained, action_bins: JSON.stringify(bins ?? codec(task).bins) };
}

/** A safetensors file that says which environment, version and task the weights are for. */
export function encodeNetwork<Action extends object, Task extends Identified>(
  learner: Learner<Action, Task>,
  { taskId, weights, training }: TrainedNetwork,
): Uint8Array {
  return encodeActor(weights, { ...networkMetadata(learner, taskId), training: JSON.stringify(training) });
}

/**
 * Reads what `encodeNetwork` wrote.
 * @throws EnvironmentError `TENSOR_FILE` when the file is not an actor's, `POLICY_MISMATCH` or `POLICY_TASK` when the actor was
 *   trained on something else than this version of the environment
 */
export function decodeNetwork<Action extends object, Task extends Identified>(
  { environment, codec, bins }: Learner<Action, Task>,
  file: Uint8Array,
): TrainedNetwork & { readonly task: Task } {
  const { weights, metadata } = decodeActor(file);
  const task = findTrainedTask(environment, metadata);
  const own = codec(task);
  requireSame('action bins', JSON.stringify(bins ?? own.bins), metadata.action_bins);
  requireSame('observation size', String(environment.features.length), String(weights.shape.observationSize));
  requireSame('head sizes', own.headSizes.join(), weights.shape.headSizes.join());
  return { task, taskId: task.id, weights, training: JSON.parse(metadata.training ?? '{}') };
}

/**
 * The policy of a network: sets each knob that its task leaves free to the value that it finds likeliest to be best.
 */
export function networkPolicy<Action extends object, Observation extends object, Task extends Identified>(
  { environment, codec: codecOf }: Learner<Action, Task>,
  task: Task,
  { weights, training }: Omit<TrainedNetwork, 'taskId'>,
): Policy<Action, Observation> {
  const codec = codecOf(task);
  const actor = new TrainedActor(weights);
  const encoder = new FeatureEncoder(environment.features);
  const features = new Float32Array(encoder.size);
  return {
    name: training.algorithm === 'distill' ? 'distilled' : 'ppo',
    /** @throws EnvironmentError `OTHER_TASK` for another task than the network was trained on */
    reset(episode) {
      if (task.id !== ANY_SERVER) requireTask(task.id, episode.taskId);
      encoder.reset();
    },
    act({ observation, previousAction }) {
      encoder.encode(observation, previousAction, features);
      const bins = Int32Array.from(codec.encode(previousAction));
      actor.act(features, bins);
      return codec.decode(bins);
    },
  };
}

/**
 * A kind of policy that training writes as JSON, beside what it is for.
 * @param field of the file that holds it
 * @param what is expected there, for the message
 */
export function jsonPolicy<Content, Action, Observation>(
  field: string,
  what: string,
  schema: ZodType<Content>,
  play: (taskId: string, content: Content) => Policy<Action, Observation>,
) {
  return {
    ...{ field, what },
    /** The policy; `undefined` where the content is none. */
    read(taskId: string, content: unknown) {
      const checked = schema.safeParse(content);
      return checked.success ? play(taskId, checked.data) : undefined;
    },
  };
}

type JsonPolicy<Action, Observation> = ReturnType<typeof jsonPolicy<unknown, Action, Observation>>;

/** A JSON file that says which environment, version and task a policy is for. */
export function encodeJsonPolicy<Task extends object>(
  environment: TrainedOn<Task>,
  taskId: string,
  content: object,
  training: TrainingNote,
): string {
  return `${JSON.stringify({ ...trainedFor(environment, taskId), ...content, training }, null, 2)}\n`;
}

/**
 * The policy of a file that training wrote, and its task: a network in safetensors, other kinds in JSON.
 * @throws EnvironmentError `TENSOR_FILE` when a network cannot be read, `POLICY_FILE` when it is no policy, `POLICY_MISMATCH` or
 *   `POLICY_TASK` when the policy was trained on something else than this version of the environment
 */
export function decodePolicy<Action extends object, Observation extends object, Task extends Identified>(
  learner: Learner<Action, Task>,
  file: Uint8Array,
  kinds: readonly JsonPolicy<Action, Observation>[] = [],
): { readonly taskId: Task['id']; readonly policy: Policy<Action, Observation> } {
  if (kinds.length === 0 || file[0] !== '{'.charCodeAt(0)) {
    const { task, ...network } = decodeNetwork(learner, file);
    return { taskId: task.id, policy: networkPolicy(learner, task, network) };
  }
  const json = parse(file);
  const { id: taskId } = findTrainedTask(learner.environment, json);
  const kind = kinds.find(({ field }) => field in json) ?? kinds[0]!;
  const content = json[kind.field];
  const policy = kind.read(String(taskId), content);
  if (policy !== undefined) return { taskId, policy };
  const got = JSON.stringify({ [kind.field]: content }).slice(0, 200);
  throw new EnvironmentError('POLICY_FILE', `Expected ${kind.what}, got ${got}`);
}

function parse(file: Uint8Array): Record<string, unknown> {
  try {
    return { ...(JSON.parse(new TextDecoder().decode(file)) as object) };
  } catch {
    throw new EnvironmentError('POLICY_FILE', 'Expected a policy in JSON');
  }
}
