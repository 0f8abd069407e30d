import { DEFAULT_ACTION, type ServeAction, type ServeObservation } from '@servegym/environments';
import type { Policy } from '../policy.ts';

/** Keeps the configuration that the server starts with. */
export class DefaultPolicy implements Policy<ServeAction, ServeObservation> {
  readonly name = 'default';

  reset(): void {}

  act(): ServeAction {
    return DEFAULT_ACTION;
  }
}
