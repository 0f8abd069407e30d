import { type FleetAction, fleet, RateRule, type RateRuleParameters } from '@servegym/environments';
import type { FleetPolicy, FleetStep } from './fleet-policy.ts';

/** `RateRule` with the parameters that were tuned for the task it plays, where there are any. */
export class TunedRatePolicy implements FleetPolicy {
  readonly name = 'rule';
  readonly #parameters: Partial<RateRuleParameters>;
  #rule = new RateRule();

  /** @param parameters held on every task */
  constructor(parameters: Partial<RateRuleParameters>) {
    this.#parameters = parameters;
  }

  reset({ taskId }: Parameters<FleetPolicy['reset']>[0]): void {
    this.#rule = new RateRule({ ...fleet.anchors.reference(String(taskId))?.rule, ...this.#parameters });
  }

  act(step: FleetStep): FleetAction {
    return this.#rule.act(step);
  }
}
