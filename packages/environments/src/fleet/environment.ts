import type { EnvironmentDefinition, Grade, ResetOptions } from '@servegym/openenv/definition';
import { binsOf } from '../feature.ts';
import { gradeWindows, type WindowEntry } from '../grading.ts';
import { DRAWN_WINDOWS, drawsServer, readSeed } from '../scenario.ts';
import { tracePlayed } from '../traces.ts';
import { windowEnvironment } from '../window-environment.ts';
import {
  controlledReturn,
  controlledTotals,
  type FleetAnchors,
  fleetAnchors,
  fleetReturnBound,
  fleetReturns,
} from './anchors/fleet-anchors.ts';
import { drawFleetRequests } from './draw-requests.ts';
import { FleetEpisode, noFleetTotals } from './fleet-episode.ts';
import { type FleetRequests, traceFleetRequests } from './fleet-requests.ts';
import { FLEET_TASKS, type FleetTask, fleetTasks, idleFleetKnobs } from './fleet-task.ts';
import {
  chooseFleetTask,
  FLEET_SHIFTS,
  type FleetScenario,
  fleetEpisodeSize,
  fleetResetOptions,
  meanRequests,
  scaleFleetArrivals,
  shiftFleetTask,
} from './scenario.ts';
import {
  FLEET_FEATURES,
  FLEET_KNOBS,
  FLEET_SERVER_FEATURES,
  type FleetAction,
  type FleetObservation,
  type FleetState,
  fleetActionSchema,
  fleetObservationSchema,
  fleetStateSchema,
} from './schema.ts';
import { drawTrainingFleet } from './training-distribution.ts';
import { fleetWindowReport } from './window-ledger.ts';

function episodeState(episode: FleetEpisode | null, reset: ResetOptions): FleetState {
  const {
    task = FLEET_TASKS.diurnal,
    seed = 0,
    totals = noFleetTotals(),
    window = 0,
    done = false,
  }: Partial<FleetEpisode> = episode ?? {};
  const { trace, shift, rate_scale } = reset as FleetScenario;
  return {
    task_id: task.id,
    trace: task.trace === undefined ? null : tracePlayed(trace, task.trace.requests),
    shift: shift ?? null,
    rate_scale: rate_scale ?? 1,
    profile: task.profile,
    second_profile: task.second?.profile ?? null,
    seed,
    total_requests: totals.requests,
    total_completed: totals.completed,
    total_attained: totals.attained,
    total_refused: totals.refused,
    revenue_usd: totals.revenueUsd,
    gpu_usd: totals.gpuUsd,
    gpu_hours: totals.gpuHours,
    cumulative_reward: totals.reward,
    elapsed_simulated_time_s: window * task.windowSeconds,
    done,
  };
}

/** The task of a reset; with `servers`, a drawn fleet, in windows that are as many for all. */
function chosenFleet(reset: ResetOptions): FleetTask {
  return drawsServer(reset) ? drawTrainingFleet(readSeed(reset), DRAWN_WINDOWS) : chooseFleetTask(reset);
}

/** Replicas behind a gateway: how many, how requests are routed, who is let in. */
export const fleet = {
  id: 'fleet',
  /** Changes whenever the same task, seed and actions may give another episode or grade. */
  version: '0.3.0',
  takes: ['task', 'trace'],
  hasLargeEpisodes: true,
  definition: (): EnvironmentDefinition<FleetAction, FleetObservation, FleetState> =>
    windowEnvironment(fleet),
  description:
    'Run a fleet of LLM inference servers: each window of 30 s shows demand, queues, caches, latencies and cost; the action sets replicas, prefill replicas, routing weights, admission, token budget and sequence cap for the next.',
  readme: new URL('./readme.md', import.meta.url),
  tasks: fleetTasks,
  actionSchema: fleetActionSchema,
  observationSchema: fleetObservationSchema,
  stateSchema: fleetStateSchema,
  knobs: FLEET_KNOBS,
  bins: binsOf(fleetActionSchema),
  features: FLEET_FEATURES,
  serverFeatures: FLEET_SERVER_FEATURES,
  shifts: FLEET_SHIFTS,
  resetOptions: fleetResetOptions,
  choose: chosenFleet,
  initialAction: (reset) => chosenFleet(reset).defaultAction,
  episodeSize: (reset) =>
    reset.servers === undefined ? fleetEpisodeSize(reset) : meanRequests(chosenFleet(reset)),
  steps: ({ windows }) => windows,
  start: (task, seed, requests?: FleetRequests) => new FleetEpisode(task, seed, requests),
  report: fleetWindowReport,
  stateOf: episodeState,
  rewardWeights: ({ prices, referenceUsd }) => ({ prices, reference_usd: referenceUsd }),
  describe: ({ maxReplicas, objectives, prices, referenceUsd }) => ({
    max_replicas: maxReplicas,
    objectives,
    prices,
    reference_usd: referenceUsd,
    reward: `(USD earned by requests completed inside their objectives, by prices, - USD of all replicas that start, run or drain) / ${referenceUsd}.`,
    changes:
      'a replica is billed from its start and serves after a cold start; one too many drains first. All else at once.',
  }),
  /** The HorizontalPodAutoscaler scores 0.20, the best tuned rule 0.50; see `gradeWindows`. */
  grade: (record): Grade => gradeWindows(record, fleet),
  shift: shiftFleetTask,
  scaleArrivals: scaleFleetArrivals,
  idleKnobs: idleFleetKnobs,
  drawRequests: drawFleetRequests,
  drawTrainingTask: drawTrainingFleet,
  traceRequests: traceFleetRequests,
  anchors: { ...fleetReturns, controlledReturn, controlledTotals, bound: fleetReturnBound, of: fleetAnchors },
  grading: {
    // The bill of all GPUs, with nobody served.
    unplayedReward({ task, profiles }) {
      const usdPerHour = Math.max(...profiles.map(({ gpu }) => gpu.count * gpu.usdPerHour));
      return -(task.maxReplicas * usdPerHour * task.windowSeconds) / 3600 / task.referenceUsd;
    },
    tuned: ({ rule }) => rule,
    shown: ['default', 'rule', 'clairvoyant'],
    figures: ({ totals }) => ({
      requests: totals.requests,
      completed: totals.completed,
      slo_attainment: totals.requests === 0 ? 1 : totals.attained / totals.requests,
      refused: totals.refused,
      revenue_usd: totals.revenueUsd,
      gpu_usd: totals.gpuUsd,
      gpu_hours: totals.gpuHours,
    }),
    words: {
      default: 'the HorizontalPodAutoscaler',
      tuned: 'the tuned rule',
      requests: 'these requests',
      known: 'them',
      unplayed: 'as all GPUs billed for nothing',
      amount: ({ referenceUsd }, difference) => `USD ${(difference * referenceUsd).toFixed(2)}`,
    },
  },
} as const satisfies WindowEntry<
  FleetAction,
  FleetObservation,
  FleetState,
  FleetTask,
  FleetRequests,
  FleetEpisode,
  FleetAnchors
>;
