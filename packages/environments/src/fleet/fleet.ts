import type { Extras, RegisteredEnvironment } from '../registered-environment.ts';
import { controlledReturn, fleetAnchors, fleetReturns } from './anchors/fleet-anchors.ts';
import { fleetReturnBound } from './anchors/return-bound.ts';
import { drawFleetRequests } from './draw-requests.ts';
import { FLEET_VERSION, fleetEnvironment } from './environment.ts';
import { traceFleetRequests } from './fleet-requests.ts';
import { type FleetTask, fleetTasks, idleFleetKnobs } from './fleet-task.ts';
import { gradeFleetEpisode } from './grader.ts';
import { chooseFleetTask, fleetResetOptions } from './scenario.ts';
import {
  FLEET_ACTION_BINS,
  FLEET_FEATURES,
  FLEET_KNOBS,
  FLEET_SERVER_FEATURES,
  type FleetAction,
  type FleetObservation,
  type FleetState,
  fleetActionSchema,
} from './schema.ts';
import { FLEET_SHIFTS, scaleFleetArrivals, shiftFleetTask } from './shifts.ts';

/** Replicas behind a gateway: how many, how requests are routed, who is let in. */
export const fleet = {
  id: 'fleet',
  version: FLEET_VERSION,
  takes: ['task', 'trace'],
  hasLargeEpisodes: true,
  definition: fleetEnvironment,
  tasks: fleetTasks,
  actionSchema: fleetActionSchema,
  knobs: FLEET_KNOBS,
  bins: FLEET_ACTION_BINS,
  features: FLEET_FEATURES,
  serverFeatures: FLEET_SERVER_FEATURES,
  shifts: FLEET_SHIFTS,
  resetOptions: fleetResetOptions,
  choose: chooseFleetTask,
  initialAction: (reset) => chooseFleetTask(reset).defaultAction,
  steps: ({ windows }) => windows,
  rewardWeights: ({ prices, referenceUsd }) => ({ prices, reference_usd: referenceUsd }),
  grade: gradeFleetEpisode,
  shift: shiftFleetTask,
  scaleArrivals: scaleFleetArrivals,
  idleKnobs: idleFleetKnobs,
  drawRequests: drawFleetRequests,
  traceRequests: traceFleetRequests,
  anchors: { ...fleetReturns, controlledReturn, bound: fleetReturnBound, of: fleetAnchors },
} as const satisfies RegisteredEnvironment<FleetAction, FleetObservation, FleetState, FleetTask> & Extras;
