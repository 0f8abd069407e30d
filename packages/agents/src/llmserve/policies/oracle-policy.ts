import {
  chooseTask,
  drawRequests,
  isRecordedTask,
  referenceConfigurations,
  type ServeAction,
  type ServeObservation,
} from '@servegym/environments';
import type { Policy, PolicyEpisode, PolicyStep } from '../../core/policy.ts';
import { planClairvoyant, UNSURE_BACKLOG_PRICES } from '../planning/plan-clairvoyant.ts';

/** Plays the plan of `planClairvoyant`, which knows all traffic to come: no fair opponent, but what others are held against. */
export class OraclePolicy implements Policy<ServeAction, ServeObservation> {
  readonly name = 'oracle';
  /** The actions of the whole episode, after `reset`. */
  plan: readonly ServeAction[] = [];

  reset({ taskId, seed, resetOptions }: PolicyEpisode): void {
    const task = chooseTask({ ...resetOptions, task_id: taskId });
    const requests = drawRequests(task, seed);
    const configurations = referenceConfigurations(task);
    this.plan = planClairvoyant(task, seed, {
      requests,
      configurations,
      ...(!isRecordedTask(task) && { backlogPrices: UNSURE_BACKLOG_PRICES }),
    }).actions;
  }

  act({ stepIndex }: PolicyStep<ServeAction, ServeObservation>): ServeAction {
    const action = this.plan[stepIndex];
    if (action === undefined)
      throw new RangeError(`Expected a window of the episode, got window ${stepIndex}`);
    return action;
  }
}
