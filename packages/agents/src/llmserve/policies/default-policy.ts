import { DEFAULT_ACTION, type ServeAction, type ServeObservation } from '@servegym/environments';
import type { Policy, PolicyEpisode } from '../../core/policy.ts';
import { knownTask } from '../known-task.ts';

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
