import type { FleetAction, FleetObservation } from '@servegym/environments';
import type { Policy, PolicyStep } from '../core/policy.ts';

/** A controller of a fleet. */
export type FleetPolicy = Policy<FleetAction, FleetObservation>;
export type FleetStep = PolicyStep<FleetAction, FleetObservation>;
