import { llmserve, type ServeAction } from '@servegym/environments';
import { AgentError, requireSame } from '../error-catalogue.ts';
import type { TrainingNote } from './learning-environment.ts';
import { type ActorWeights, decodeActor, encodeActor } from './trained-actor.ts';
import { findTrainedTask, knownTask, trainedTask } from './known-task.ts';
import { ServeActionCodec, serveFeatures } from './serve-encoding.ts';

/** A network that has been trained on a task of `llmserve`. */
export interface ServeActor {
  readonly taskId: string;
  readonly weights: ActorWeights;
  /** Origin, for people: algorithm, steps, seed. */
  readonly training: TrainingNote;
}

/** A safetensors file that says which environment, version and task the weights are for. */
export function encodeServeActor({ taskId, weights, training }: ServeActor): Uint8Array {
  return encodeActor(weights, { ...serveActorMetadata(taskId), training: JSON.stringify(training) });
}

/** Metadata of a network for a task. */
export function serveActorMetadata(taskId: string): Record<string, string> {
  return {
    environment: llmserve.id,
    version: llmserve.version,
    ...trainedTask(taskId),
    action_bins: JSON.stringify(new ServeActionCodec(knownTask(taskId)).bins),
  };
}

/**
 * Reads what `encodeServeActor` wrote.
 * @throws AgentError `TENSOR_FILE` when the file is not an actor's, `POLICY_MISMATCH` or `POLICY_TASK` when the actor was trained on something else than this version of `llmserve`
 */
export function decodeServeActor(file: Uint8Array): ServeActor {
  const { weights, metadata } = decodeActor(file);
  requireThisEnvironment(metadata.environment, metadata.version);
  const task = findTrainedTask({ task: metadata.task, task_digest: metadata.task_digest });
  const { bins, headSizes } = new ServeActionCodec(task);
  requireSame('action bins', JSON.stringify(bins), metadata.action_bins);
  serveFeatures(weights.shape.observationSize);
  requireSame('head sizes', headSizes.join(), weights.shape.headSizes.join());
  return { taskId: task.id, weights, training: JSON.parse(metadata.training ?? '{}') };
}

/** A configuration that has been tuned for a task of `llmserve`. */
export interface ServeConstant {
  readonly taskId: string;
  readonly action: ServeAction;
  /** Origin, for people. */
  readonly training: TrainingNote;
}

/** A JSON file that says which environment, version and task the configuration is for. */
export function encodeServeConstant({ taskId, action, training }: ServeConstant): string {
  const { id: environment, version } = llmserve;
  return `${JSON.stringify({ environment, version, ...trainedTask(taskId), action, training }, null, 2)}\n`;
}

/** Reads the JSON of `encodeServeConstant`. @throws AgentError */
export function readServeConstant(json: Readonly<Record<string, unknown>>): ServeConstant {
  const { environment, version, task, task_digest, action, training } = json;
  requireThisEnvironment(environment, version);
  const { id: taskId } = findTrainedTask({ task, task_digest });
  const checked = llmserve.actionSchema.safeParse(action);
  if (!checked.success) {
    throw new AgentError('POLICY_FILE', {
      problem: `Expected an action, got ${JSON.stringify({ action }).slice(0, 200)}`,
    });
  }
  return { taskId, action: checked.data, training: training as ServeConstant['training'] };
}

/** Center of a regime of traffic. */
export interface RegimeCenter {
  /** ln(1 + arrivals a second). */
  readonly arrivals: number;
  /** ln(1 + mean prompt, tokens). */
  readonly prompts: number;
}

/** A configuration for each regime of traffic. */
export interface RegimeTable {
  readonly taskId: string;
  /** One or more. */
  readonly regimes: readonly { readonly center: RegimeCenter; readonly action: ServeAction }[];
  /** Origin, for people. */
  readonly training: TrainingNote;
}

/** A JSON file that says which environment, version and task the regimes are for. */
export function encodeRegimeTable({ taskId, regimes, training }: RegimeTable): string {
  const { id: environment, version } = llmserve;
  return `${JSON.stringify({ environment, version, ...trainedTask(taskId), regimes, training }, null, 2)}\n`;
}

/** Reads the JSON of `encodeRegimeTable`. @throws AgentError */
export function readRegimeTable(json: Readonly<Record<string, unknown>>): RegimeTable {
  requireThisEnvironment(json.environment, json.version);
  const { id: taskId } = findTrainedTask({ task: json.task, task_digest: json.task_digest });
  const regimes = Array.isArray(json.regimes) ? json.regimes.map(readRegime) : [];
  if (regimes.length === 0)
    throw new AgentError('POLICY_FILE', { problem: 'Expected at least one regime, got none' });
  return { taskId, regimes, training: (json.training ?? {}) as TrainingNote };
}

function readRegime(regime: unknown): RegimeTable['regimes'][number] {
  const { center, action } = (regime ?? {}) as Partial<RegimeTable['regimes'][number]>;
  const checked = llmserve.actionSchema.safeParse(action);
  if (!Number.isFinite(center?.arrivals) || !Number.isFinite(center?.prompts) || !checked.success) {
    throw new AgentError('POLICY_FILE', {
      problem: `Expected a regime to have a center and an action, got ${JSON.stringify(regime).slice(0, 200)}`,
    });
  }
  return { center: center!, action: checked.data };
}

/** @throws AgentError `POLICY_MISMATCH` when a policy was trained on another environment, or on another version of it */
function requireThisEnvironment(environment: unknown, version: unknown): void {
  requireSame('environment', llmserve.id, environment);
  requireSame('version of llmserve', llmserve.version, version);
}
