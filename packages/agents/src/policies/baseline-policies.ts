import {
  holdMaskedKnobs,
  llmserve,
  type ServeAction,
  type ServeObservation,
  type ServeTask,
} from '@servegym/environments';
import { RandomStream } from '@servegym/simulator';
import type { Policy, PolicyEpisode } from '../core/policy.ts';
import { requireTask } from '../error-catalogue.ts';
import { knownTask } from '../learning/known-task.ts';
import type { ServeConstant } from '../learning/policy-files.ts';

/** Keeps the configuration that the server starts with. */
export class DefaultPolicy implements Policy<ServeAction, ServeObservation> {
  readonly name = 'default';
  #action = llmserve.defaultAction;

  reset({ taskId }: PolicyEpisode): void {
    this.#action = knownTask(taskId).defaultAction;
  }

  act(): ServeAction {
    return this.#action;
  }
}

/** Keeps the configuration that earned most on the training traffic of the task; the default of a task for which none is recorded. */
export class BestConstantPolicy implements Policy<ServeAction, ServeObservation> {
  readonly name = 'static-tuned';
  #action: ServeAction | null = null;

  reset({ taskId, resetOptions }: PolicyEpisode): void {
    const [best] = llmserve.anchors.configurations(llmserve.choose({ ...resetOptions, task_id: taskId }));
    this.#action = best!;
  }

  act(): ServeAction {
    if (this.#action === null) throw new TypeError('Expected `reset` before `act`');
    return this.#action;
  }
}

/** Keeps the configuration that earned most on the training traffic of its task. */
export class StaticPolicy implements Policy<ServeAction, ServeObservation> {
  readonly name = 'static-tuned';
  readonly #constant: ServeConstant;

  constructor(constant: ServeConstant) {
    this.#constant = constant;
  }

  /** @throws AgentError `OTHER_TASK` for another task than the configuration was tuned for */
  reset({ taskId }: PolicyEpisode): void {
    requireTask(this.#constant.taskId, taskId);
  }

  act(): ServeAction {
    return holdMaskedKnobs(knownTask(this.#constant.taskId), this.#constant.action);
  }
}

/** Draws every active knob uniformly from its range, anew for every window. */
export class RandomPolicy implements Policy<ServeAction, ServeObservation> {
  readonly name = 'random';
  #task: ServeTask | null = null;
  #random = new RandomStream(0, 'random policy');

  reset({ taskId, seed }: PolicyEpisode): void {
    this.#task = knownTask(taskId);
    this.#random = new RandomStream(seed, 'random policy');
  }

  act(): ServeAction {
    const random = this.#random;
    if (this.#task === null) throw new TypeError('Expected `reset` before `act`');
    return holdMaskedKnobs(this.#task, {
      batch_cap: random.integer(1, 512),
      kv_budget_fraction: 0.1 + 0.9 * random.uniform(),
      speculation_depth: random.integer(0, 8),
      quantization_tier:
        llmserve.bins.quantization_tier[random.integer(0, llmserve.bins.quantization_tier.length - 1)],
      prefill_decode_split: random.integer(0, 1) === 1,
      priority_routing: random.integer(0, 1) === 1,
    });
  }
}
