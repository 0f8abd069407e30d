import { holdMaskedKnobs, type ServeAction, type ServeObservation } from '@servegym/environments';
import type { Policy, PolicyEpisode, PolicyStep } from '../../core/policy.ts';
import { knownTask } from '../known-task.ts';
import type { RegimeTable } from '../learn/regime-table.ts';
import { RegimeTracker } from '../learn/regime-tracker.ts';
import { requireTask } from '../trained-task.ts';

/** Tells regimes of traffic apart, and keeps a configuration for each. */
export class RegimePolicy implements Policy<ServeAction, ServeObservation> {
  readonly name = 'cem';
  readonly #table: RegimeTable;
  readonly #tracker: RegimeTracker;

  constructor(table: RegimeTable) {
    this.#table = table;
    this.#tracker = new RegimeTracker(table.regimes.map(({ center }) => center));
  }

  /** Throws a `RangeError` for another task than the regimes were searched for. */
  reset({ taskId }: PolicyEpisode): void {
    requireTask(this.#table.taskId, taskId);
    this.#tracker.reset();
  }

  act({ observation }: PolicyStep<ServeAction, ServeObservation>): ServeAction {
    const { action } = this.#table.regimes[this.#tracker.see(observation)];
    return holdMaskedKnobs(knownTask(this.#table.taskId), action);
  }
}
