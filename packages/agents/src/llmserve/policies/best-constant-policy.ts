import {
  chooseTask,
  referenceConfigurations,
  type ServeAction,
  type ServeObservation,
} from '@servegym/environments';
import type { Policy, PolicyEpisode } from '../../core/policy.ts';

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
