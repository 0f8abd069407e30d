import type { EnvironmentDefinition, Grade, ResetOptions } from '@servegym/openenv/definition';
import { binsOf } from '../feature.ts';
import { gradeWindows, type WindowEntry } from '../grading.ts';
import { DRAWN_WINDOWS, drawsServer, readSeed } from '../scenario.ts';
import { windowEnvironment } from '../window-environment.ts';
import {
  constantReturn,
  type EpisodeAnchors,
  episodeAnchors,
  referenceConfigurations,
  returnBound,
  serveReturns,
  summarizeReference,
} from './anchors/serve-anchors.ts';
import { drawRequests, type EpisodeRequests } from './episode-requests.ts';
import { realServeEnvironment } from './real/environment.ts';
import {
  chooseTask,
  episodeSize,
  meanRate,
  SHIFTS,
  scaleArrivals,
  serveResetOptions,
  shiftTask,
} from './scenario.ts';
import {
  DEFAULT_ACTION,
  SERVE_KNOBS,
  SERVER_FEATURES,
  type ServeAction,
  type ServeObservation,
  type ServeState,
  serveActionSchema,
  serveObservationSchema,
  serveStateSchema,
  WINDOW_FEATURES,
} from './schema.ts';
import { episodeState, ServeEpisode } from './serve-episode.ts';
import { activeKnobs, type ServeTask, serveTasks } from './serve-task.ts';
import { describeServer, describeTask } from './server-description.ts';
import { describedProfile } from './server-estimate.ts';
import { drawTrainingEpisode, HELD_OUT } from './training-distribution.ts';
import { windowReport } from './window-metrics.ts';

/** The task of a reset; with `servers`, on a drawn server and in windows that are as many for all. */
function chosenTask(reset: ResetOptions): ServeTask {
  if (!drawsServer(reset)) return chooseTask(reset);
  const { task, profile: server } = drawTrainingEpisode(readSeed(reset));
  const described = reset.server_from !== undefined && { serverFrom: 'metrics' as const };
  return { ...task, server, maskedKnobs: undefined, windows: DRAWN_WINDOWS, ...described };
}

/** Two simulated GPUs that serve one model: queue, latency, memory and cost each window, six knobs for the next. */
export const llmserve = {
  id: 'llmserve',
  /** Changes whenever the same task, seed and actions may give another episode. */
  version: '0.5.0',
  takes: ['task', 'trace', 'server'],
  definition({ real } = {}): EnvironmentDefinition<ServeAction, ServeObservation, ServeState> {
    const simulated = windowEnvironment(llmserve);
    return real ? realServeEnvironment(real, simulated) : simulated;
  },
  description:
    'Run an LLM inference server: each window shows queue, latency, KV memory and cost; the action sets batch cap, KV budget, speculation depth, quantization, prefill/decode split and priority routing for the next.',
  readme: new URL('./readme.md', import.meta.url),
  tasks: serveTasks,
  actionSchema: serveActionSchema,
  observationSchema: serveObservationSchema,
  stateSchema: serveStateSchema,
  knobs: SERVE_KNOBS,
  bins: binsOf(serveActionSchema),
  features: WINDOW_FEATURES,
  serverFeatures: SERVER_FEATURES,
  shifts: SHIFTS,
  heldOut: HELD_OUT,
  resetOptions: serveResetOptions,
  choose: chosenTask,
  initialAction: (reset) => chosenTask(reset).defaultAction,
  episodeSize(reset) {
    if (reset.servers === undefined) return episodeSize(reset);
    const { phases, windows, windowSeconds } = chosenTask(reset);
    return meanRate(phases) * windows * windowSeconds;
  },
  steps: ({ windows }) => windows,
  start: (task, seed, requests?: EpisodeRequests) => new ServeEpisode(task, seed, { requests }),
  report: windowReport,
  stateOf: (episode, reset) => episodeState(episode, reset, episode?.sloViolations() ?? 0),
  rewardWeights: ({ reward }) => reward,
  describe: describeTask,
  /** The default configuration scores 0.20, the best constant one 0.50; see `gradeWindows`. */
  grade: (record): Grade => gradeWindows(record, llmserve),
  shift: shiftTask,
  scaleArrivals,
  drawTrainingEpisode,
  activeKnobs,
  idleKnobs: ({ maskedKnobs = [] }) => maskedKnobs,
  defaultAction: DEFAULT_ACTION,
  drawRequests,
  describeServer,
  describedProfile,
  anchors: {
    ...serveReturns,
    configurations: referenceConfigurations,
    constantReturn,
    bound: returnBound,
    of: episodeAnchors,
    summary: summarizeReference,
  },
  grading: {
    unplayedReward: () => -1,
    tuned: ({ constant }) => constant,
    shown: ['default', 'constant', 'planner', 'clairvoyant'],
    figures: (episode) => ({
      requests_served: episode.totals.requestsServed,
      requests_rejected: episode.totals.requestsRejected,
      slo_violations: episode.sloViolations(),
      preemptions: episode.totals.preemptions,
      cost_usd: episode.totals.cost,
    }),
    words: {
      default: 'the default configuration',
      tuned: 'the best configuration that never changes',
      requests: 'this traffic',
      known: 'the traffic',
      unplayed: '-1 each',
      amount: (_, difference) => difference.toFixed(1),
    },
  },
} as const satisfies WindowEntry<
  ServeAction,
  ServeObservation,
  ServeState,
  ServeTask,
  EpisodeRequests,
  ServeEpisode,
  EpisodeAnchors
>;
