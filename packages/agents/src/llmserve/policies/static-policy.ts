import { holdMaskedKnobs, type ServeAction, type ServeObservation } from '@servegym/environments';
import type { Policy, PolicyEpisode } from '../../core/policy.ts';
import { knownTask } from '../known-task.ts';
import type { ServeConstant } from '../learn/serve-constant.ts';
import { requireTask } from './trained-task.ts';

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
