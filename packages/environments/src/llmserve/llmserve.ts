import type { Extras, RegisteredEnvironment } from '../registered-environment.ts';
import { constantReturn, episodeAnchors, roomToAdapt } from './anchors/episode-anchors.ts';
import {
  isRecordedTask,
  REFERENCE_RETURNS_URL,
  recordedReference,
  referenceConfigurations,
  taskFingerprint,
} from './anchors/reference-returns.ts';
import { summarizeReference } from './anchors/reference-summary.ts';
import { returnBound } from './anchors/return-bound.ts';
import { SERVE_VERSION, serveEnvironment } from './environment.ts';
import { SERVER_FEATURES, WINDOW_FEATURES } from './features.ts';
import { gradeEpisode } from './grader.ts';
import { randomiseTask } from './randomise-task.ts';
import { realServeEnvironment } from './real/environment.ts';
import { drawRequests } from './requests/episode-requests.ts';
import { chooseTask, serveResetOptions } from './reset-options.ts';
import {
  DEFAULT_ACTION,
  SERVE_ACTION_BINS,
  SERVE_KNOBS,
  type ServeAction,
  type ServeObservation,
  type ServeState,
  serveActionSchema,
} from './schema.ts';
import { SHIFTS, scaleArrivals, shiftTask } from './shifts.ts';
import { serveTasks } from './task-registry.ts';
import { activeKnobs } from './tasks/active-knobs.ts';
import type { ServeTask } from './tasks/serve-task.ts';

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
  anchors: {
    url: REFERENCE_RETURNS_URL,
    reference: recordedReference,
    isRecorded: isRecordedTask,
    fingerprint: taskFingerprint,
    configurations: referenceConfigurations,
    constantReturn,
    bound: returnBound,
    of: episodeAnchors,
    room: roomToAdapt,
    summary: summarizeReference,
  },
} as const satisfies RegisteredEnvironment<ServeAction, ServeObservation, ServeState, ServeTask> & Extras;
