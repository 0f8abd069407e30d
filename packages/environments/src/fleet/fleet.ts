import type { Extras, RegisteredEnvironment } from '../registered-environment.ts';
import { controlledReturn, fleetAnchors } from './anchors/fleet-anchors.ts';
import {
  FLEET_REFERENCE_RETURNS_URL,
  fleetTaskFingerprint,
  recordedFleetReference,
} from './anchors/reference-returns.ts';
import { fleetReturnBound } from './anchors/return-bound.ts';
import { FLEET_VERSION, fleetEnvironment } from './environment.ts';
import { FLEET_FEATURES, FLEET_SERVER_FEATURES } from './features.ts';
import { gradeFleetEpisode } from './grader.ts';
import { drawFleetRequests } from './requests/draw-requests.ts';
import { traceFleetRequests } from './requests/trace-requests.ts';
import { chooseFleetTask, fleetResetOptions } from './reset-options.ts';
import {
  FLEET_ACTION_BINS,
  FLEET_KNOBS,
  type FleetAction,
  type FleetObservation,
  type FleetState,
  fleetActionSchema,
} from './schema.ts';
import { FLEET_SHIFTS, scaleFleetArrivals, shiftFleetTask } from './shifts.ts';
import { fleetTasks } from './task-registry.ts';
import { type FleetTask, idleFleetKnobs } from './tasks/fleet-task.ts';

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
  anchors: {
    url: FLEET_REFERENCE_RETURNS_URL,
    reference: recordedFleetReference,
    fingerprint: fleetTaskFingerprint,
    controlledReturn,
    bound: fleetReturnBound,
    of: fleetAnchors,
  },
} as const satisfies RegisteredEnvironment<FleetAction, FleetObservation, FleetState, FleetTask> & Extras;
