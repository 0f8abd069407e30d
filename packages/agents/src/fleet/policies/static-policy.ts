import type { FleetAction } from '@servegym/environments';
import type { FleetPolicy } from './fleet-policy.ts';

/** As many replicas all the time, with the other settings of the task. */
export class StaticPolicy implements FleetPolicy {
  readonly name: string;
  readonly #settings: Partial<FleetAction>;

  constructor(settings: Partial<FleetAction>) {
    this.#settings = settings;
    this.name = `static:${settings.replicas}`;
  }

  reset(): void {}

  act({ previousAction }: Parameters<FleetPolicy['act']>[0]): FleetAction {
    return { ...previousAction, ...this.#settings };
  }
}
