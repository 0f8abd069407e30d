import { readFileSync } from 'node:fs';
import {
  holdMaskedKnobs,
  llmserve,
  type ServeAction,
  type ServeObservation,
  type ServeTask,
  serverOf,
  type TaskId,
} from '@servegym/environments';
import type { EngineProfile, RandomStream } from '@servegym/simulator';
import type { Policy, PolicyEpisode } from '../core/policy.ts';
import {
  ANY_SERVER,
  ANY_SERVER_LEARNER,
  decodeNetwork,
  decodePolicy,
  jsonPolicy,
  knownTask,
  networkPolicy,
  otherTask,
  PRECISION_LEARNER,
  requireTask,
  SERVE_LEARNER,
} from '../learning/learners.ts';
import { playPrecisions } from '../learning/precision-rollouts.ts';
import { decodeActor, TrainedActor } from '../learning/trained-actor.ts';
import { catalogue, constantPolicy, createFrom, episodePolicy, randomPolicy } from './catalogue.ts';
import { MpcPolicy, OraclePolicy } from './planner-policies.ts';
import policies from './policies.json' with { type: 'json' };
import { heuristicPolicy, rulePolicy } from './rule-policies.ts';
import { steadyStatePolicy } from './steady-state.ts';

/** A policy for the `llmserve` environment. */
export type ServePolicy = Policy<ServeAction, ServeObservation>;

/** Policies that come with the package as a network for each task. */
export const SHIPPED_NAMES = ['ppo', 'distilled'] as const;
export type ShippedName = (typeof SHIPPED_NAMES)[number];
/** The shipped policy that runs any server. */
const ANY_SERVER_POLICY = 'any-server';

const SHIPPED_FOLDER = new URL('../../weights/', import.meta.url);

/** File of the shipped policy of a task. */
export function shippedFile(name: ShippedName, taskId: TaskId): URL {
  return new URL(`${name}-${taskId}.safetensors`, SHIPPED_FOLDER);
}

/**
 * Plays every task with what was trained for it. Its reset throws EnvironmentError `OTHER_TASK` for a task that nothing was
 * trained for.
 */
function shippedPolicy(name: ShippedName): ServePolicy {
  const loaded = new Map<TaskId, ServePolicy>();
  return episodePolicy(name, (episode) => {
    const taskId = llmserve.tasks.shippedIds.find((id) => id === episode.taskId);
    if (taskId === undefined) throw otherTask(llmserve.tasks.shippedIds.join(' or '), episode.taskId);
    const policy = loaded.get(taskId) ?? loadServePolicy(readFileSync(shippedFile(name, taskId))).policy;
    loaded.set(taskId, policy);
    policy.reset(episode);
    return (step) => policy.act(step);
  });
}

/** The policies of `llmserve`. */
export const SERVE_POLICIES = catalogue<ServeAction, ServeObservation>(policies.llmserve, {
  random: () => randomPolicy(drawAction),
  default: () => constantPolicy('default', ({ taskId }) => knownTask(llmserve, taskId).defaultAction),
  heuristic: () => heuristicPolicy(),
  'static-tuned': () => constantPolicy('static-tuned', bestConstant),
  rule: () => rulePolicy(),
  'steady-state': () => steadyStatePolicy(),
  mpc: () => new MpcPolicy(),
  'mpc-unshifted': () => new MpcPolicy(undefined, 'mpc-unshifted'),
  oracle: () => new OraclePolicy(),
  ...Object.fromEntries(SHIPPED_NAMES.map((name) => [name, () => shippedPolicy(name)])),
  [ANY_SERVER_POLICY]: () =>
    loadServePolicy(readFileSync(new URL(`${ANY_SERVER_POLICY}.safetensors`, SHIPPED_FOLDER))).policy,
});

/** The configuration that earned most on the training traffic of the task; its default where none is recorded. */
function bestConstant({ taskId, resetOptions }: PolicyEpisode): ServeAction {
  return llmserve.anchors.configurations(llmserve.choose({ ...resetOptions, task_id: taskId }))[0]!;
}

/** Every active knob uniformly from its range. */
function drawAction(random: RandomStream, { taskId }: PolicyEpisode): ServeAction {
  const tiers = llmserve.bins.quantization_tier;
  return holdMaskedKnobs(knownTask(llmserve, taskId), {
    batch_cap: random.integer(1, 512),
    kv_budget_fraction: 0.1 + 0.9 * random.uniform(),
    speculation_depth: random.integer(0, 8),
    quantization_tier: tiers[random.integer(0, tiers.length - 1)],
    prefill_decode_split: random.integer(0, 1) === 1,
    priority_routing: random.integer(0, 1) === 1,
  });
}

/** A fresh policy. @throws EnvironmentError `UNKNOWN_POLICY` */
export function createServePolicy(name: string): ServePolicy {
  return createFrom(SERVE_POLICIES, name);
}

/** Keeps the configuration that was tuned for a task. It refuses other tasks. */
export function tunedConstant(taskId: string, action: ServeAction): ServePolicy {
  return constantPolicy('static-tuned', (episode) => {
    requireTask(taskId, episode.taskId);
    return holdMaskedKnobs(knownTask(llmserve, taskId), action);
  });
}

const KINDS = [jsonPolicy('action', 'an action', llmserve.actionSchema, tunedConstant)];

/** The policy of a file that training wrote, and its task, or `any`; see `decodePolicy`. */
export function loadServePolicy(file: Uint8Array): { readonly taskId: string; readonly policy: ServePolicy } {
  if (file[0] === '{'.charCodeAt(0) || decodeActor(file).metadata.task !== ANY_SERVER) {
    return decodePolicy(SERVE_LEARNER, file, KINDS);
  }
  const play = anyServerPlayer(file);
  const policy = episodePolicy<ServeAction, ServeObservation>(ANY_SERVER_POLICY, (episode) => {
    const task = llmserve.choose({ ...episode.resetOptions, task_id: episode.taskId });
    return play(task, serverOf(task), episode);
  });
  return { taskId: ANY_SERVER, policy };
}

/** Plays a network for any server on the server of a task. */
export function anyServerPlayer(file: Uint8Array) {
  if (decodeActor(file).weights.shape.headSizes.length === 1) {
    const actor = new TrainedActor(decodeNetwork(PRECISION_LEARNER, file).weights);
    return (task: ServeTask, profile: EngineProfile) => playPrecisions(task, profile, actor);
  }
  const { task: any, ...network } = decodeNetwork(ANY_SERVER_LEARNER, file);
  return (task: ServeTask, _: EngineProfile, episode: PolicyEpisode): ServePolicy['act'] => {
    const policy: ServePolicy = networkPolicy(ANY_SERVER_LEARNER, any, network);
    policy.reset(episode);
    return (step) => holdMaskedKnobs(task, policy.act(step));
  };
}
