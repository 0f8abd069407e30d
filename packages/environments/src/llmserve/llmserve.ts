import type { Extras, RegisteredEnvironment } from '../registry.ts';
import {
  constantReturn,
  episodeAnchors,
  referenceConfigurations,
  returnBound,
  serveReturns,
  summarizeReference,
} from './anchors/serve-anchors.ts';
import { gradeEpisode, SERVE_VERSION, serveEnvironment } from './environment.ts';
import { drawRequests } from './episode-requests.ts';
import { realServeEnvironment } from './real/environment.ts';
import {
  chooseTask,
  randomiseTask,
  SHIFTS,
  scaleArrivals,
  serveResetOptions,
  shiftTask,
} from './scenario.ts';
import {
  DEFAULT_ACTION,
  SERVE_ACTION_BINS,
  SERVE_KNOBS,
  SERVER_FEATURES,
  type ServeAction,
  type ServeObservation,
  type ServeState,
  serveActionSchema,
  WINDOW_FEATURES,
} from './schema.ts';
import { activeKnobs, type ServeTask, serveTasks } from './serve-task.ts';
import { describeServer } from './server-description.ts';

/** Two GPUs that serve one model, whose six knobs are set once a window. */
export const llmserve = {
  id: 'llmserve',
  version: SERVE_VERSION,
  takes: ['task', 'trace', 'server'],
  definition: ({ real } = {}) => (real ? realServeEnvironment(real) : serveEnvironment()),
  tasks: serveTasks,
  actionSchema: serveActionSchema,
  knobs: SERVE_KNOBS,
  bins: SERVE_ACTION_BINS,
  features: WINDOW_FEATURES,
  serverFeatures: SERVER_FEATURES,
  shifts: SHIFTS,
  resetOptions: serveResetOptions,
  choose: chooseTask,
  initialAction: (reset) => chooseTask(reset).defaultAction,
  steps: ({ windows }) => windows,
  rewardWeights: ({ reward }) => reward,
  grade: gradeEpisode,
  shift: shiftTask,
  scaleArrivals,
  randomise: randomiseTask,
  activeKnobs,
  defaultAction: DEFAULT_ACTION,
  drawRequests,
  describeServer,
  anchors: {
    ...serveReturns,
    configurations: referenceConfigurations,
    constantReturn,
    bound: returnBound,
    of: episodeAnchors,
    summary: summarizeReference,
  },
} as const satisfies RegisteredEnvironment<ServeAction, ServeObservation, ServeState, ServeTask> & Extras;
