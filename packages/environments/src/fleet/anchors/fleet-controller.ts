import type { FleetAction, FleetObservation } from '../schema.ts';

/** Input of a controller's choice. */
export interface FleetControllerStep {
  readonly observation: FleetObservation;
  /** The settings in force. */
  readonly previousAction: FleetAction;
  /** Windows played so far. */
  readonly stepIndex: number;
}

/** A classic controller that the grader plays, to hold an episode against it. */
export interface FleetController {
  readonly name: string;
  /** Forgets the last episode. */
  reset(): void;
  act(step: FleetControllerStep): FleetAction;
}
