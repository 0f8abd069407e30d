import {
  chooseTask,
  DEFAULT_ACTION,
  holdMaskedKnobs,
  referenceConfigurations,
  type ServeAction,
  type ServeObservation,
} from '@servegym/environments';
import type { Policy, PolicyEpisode } from '../../core/policy.ts';
import { knownTask } from '../known-task.ts';
import type { ServeConstant } from '../learn/serve-constant.ts';
import { requireTask } from '../trained-task.ts';

/** Keeps the configuration that the server starts with. */
export class DefaultPolicy implements Policy<ServeAction, ServeObservation> {
  readonly name = 'default';
  #action = DEFAULT_ACTION;

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
    const [best] = referenceConfigurations(chooseTask({ ...resetOptions, task_id: taskId }));
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

  /** Throws a `RangeError` for another task than the configuration was tuned for. */
  reset({ taskId }: PolicyEpisode): void {
    requireTask(this.#constant.taskId, taskId);
  }

  act(): ServeAction {
    return holdMaskedKnobs(knownTask(this.#constant.taskId), this.#constant.action);
  }
}
