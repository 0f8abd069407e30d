import { holdMaskedKnobs, type ServeAction, type ServeObservation } from '@servegym/environments';
import type { Policy, PolicyEpisode, PolicyStep } from '../core/policy.ts';
import { AgentError, requireTask } from '../error-catalogue.ts';
import { NetworkPolicy } from '../learning/network-policy.ts';
import { knownTask } from '../learning/known-task.ts';
import {
  decodeServeActor,
  type RegimeCenter,
  type RegimeTable,
  readRegimeTable,
  readServeConstant,
  type ServeActor,
} from '../learning/policy-files.ts';
import { ServeActionCodec, serveFeatures } from '../learning/serve-encoding.ts';
import { StaticPolicy } from './baseline-policies.ts';
import type { ServePolicy } from './serve-policies.ts';

/** The policy of a network that was trained on `llmserve`. */
export function networkPolicy({ taskId, weights, training }: ServeActor): ServePolicy {
  return new NetworkPolicy({
    ...{ taskId, weights, name: training.algorithm === 'distill' ? 'distilled' : 'ppo' },
    features: serveFeatures(weights.shape.observationSize),
    codec: new ServeActionCodec(knownTask(taskId)),
  });
}

/** Tells regimes of traffic apart, and keeps a configuration for each. */
export class RegimePolicy implements Policy<ServeAction, ServeObservation> {
  readonly name = 'cem';
  readonly #table: RegimeTable;
  readonly #tracker: RegimeTracker;

  constructor(table: RegimeTable) {
    this.#table = table;
    this.#tracker = new RegimeTracker(table.regimes.map(({ center }) => center));
  }

  /** @throws AgentError `OTHER_TASK` for another task than the regimes were searched for */
  reset({ taskId }: PolicyEpisode): void {
    requireTask(this.#table.taskId, taskId);
    this.#tracker.reset();
  }

  act({ observation }: PolicyStep<ServeAction, ServeObservation>): ServeAction {
    const { action } = this.#table.regimes[this.#tracker.see(observation)];
    return holdMaskedKnobs(knownTask(this.#table.taskId), action);
  }
}

/** A policy that was trained, and the task it was trained for. */
export interface TrainedPolicy {
  readonly taskId: string;
  readonly policy: ServePolicy;
}

/**
 * The policy of a file that training wrote: a network in safetensors; in JSON one configuration, or one for each regime.
 * @throws AgentError `TENSOR_FILE` when a network cannot be read, `POLICY_FILE` when it is no policy, `POLICY_MISMATCH` or
 *   `POLICY_TASK` when the policy was trained on something else than this version of `llmserve`
 */
export function loadTrainedPolicy(file: Uint8Array): TrainedPolicy {
  if (file[0] !== '{'.charCodeAt(0)) {
    const actor = decodeServeActor(file);
    return { taskId: actor.taskId, policy: networkPolicy(actor) };
  }
  const json = parse(file);
  if ('regimes' in json) {
    const table = readRegimeTable(json);
    return { taskId: table.taskId, policy: new RegimePolicy(table) };
  }
  const constant = readServeConstant(json);
  return { taskId: constant.taskId, policy: new StaticPolicy(constant) };
}

function parse(file: Uint8Array): Record<string, unknown> {
  try {
    return { ...(JSON.parse(new TextDecoder().decode(file)) as object) };
  } catch {
    throw new AgentError('POLICY_FILE', { problem: 'Expected a policy in JSON' });
  }
}

/** Weight of the last window in what the traffic is taken to be: a regime shows within two windows. */
const NEW_WEIGHT = 0.6;
/** Prompt lengths differ by more than arrival rates do: both are made to weigh about the same. */
const PROMPT_WEIGHT = 0.5;

/** Says which regime the traffic is in: that with the nearest center. */
export class RegimeTracker {
  readonly #centers: readonly RegimeCenter[];
  #arrivals = Number.NaN;
  #prompts = Number.NaN;

  constructor(centers: readonly RegimeCenter[]) {
    this.#centers = centers;
  }

  reset(): void {
    this.#arrivals = Number.NaN;
    this.#prompts = Number.NaN;
  }

  /** Takes a window into account. Before traffic has been seen, the first regime it is. */
  see({ request_arrival_rate: rate, mean_prompt_length: prompt, step_index }: ServeObservation): number {
    if (step_index === 0) return 0;
    this.#arrivals = blend(this.#arrivals, Math.log1p(rate));
    // A window without arrivals says nothing about the prompts.
    if (prompt > 0) this.#prompts = blend(this.#prompts, Math.log1p(prompt));
    let nearest = 0;
    let least = Infinity;
    for (const [regime, center] of this.#centers.entries()) {
      const prompts = Number.isNaN(this.#prompts) ? 0 : PROMPT_WEIGHT * (center.prompts - this.#prompts);
      const distance = (center.arrivals - this.#arrivals) ** 2 + prompts ** 2;
      if (distance < least) [nearest, least] = [regime, distance];
    }
    return nearest;
  }
}

function blend(old: number, value: number): number {
  return Number.isNaN(old) ? value : old + NEW_WEIGHT * (value - old);
}
