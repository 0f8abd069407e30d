import { readFileSync } from 'node:fs';
import type { EnvironmentDefinition, EpisodeRecord, Grade, ResetOptions } from '@servegym/openenv/definition';
import { gradeWindows } from '../grading.ts';
import { tracePlayed } from '../traces.ts';
import { windowEnvironment } from '../window-environment.ts';
import { episodeAnchors, serveReturns } from './anchors/serve-anchors.ts';
import { drawRequests } from './episode-requests.ts';
import { chooseTask, episodeSize, type ServeScenario, SHIFTS, serveResetOptions } from './scenario.ts';
import {
  SERVE_KNOBS,
  type ServeAction,
  type ServeObservation,
  type ServeState,
  serveActionSchema,
  serveObservationSchema,
  serveStateSchema,
} from './schema.ts';
import { ServeEpisode } from './serve-episode.ts';
import { SERVE_TASKS, type ServeTask, serveTasks } from './serve-task.ts';
import { windowReport } from './window-metrics.ts';

/** Changes whenever the same task, seed and actions may give another episode. */
export const SERVE_VERSION = '0.4.0';

/** Two simulated GPUs that serve one model: queue, latency, memory and cost each window, six knobs for the next. */
export function serveEnvironment(): EnvironmentDefinition<ServeAction, ServeObservation, ServeState> {
  return windowEnvironment({
    id: 'llmserve',
    version: SERVE_VERSION,
    description:
      'Run an LLM inference server: each window shows queue, latency, KV memory and cost; the action sets batch cap, KV budget, speculation depth, quantization, prefill/decode split and priority routing for the next.',
    readme: readFileSync(new URL('./readme.md', import.meta.url), 'utf8'),
    action: serveActionSchema,
    observation: serveObservationSchema,
    state: serveStateSchema,
    resetOptions: serveResetOptions(),
    knobs: SERVE_KNOBS,
    tasks: serveTasks,
    shifts: SHIFTS,
    choose: chooseTask,
    episodeSize,
    start: (task: ServeTask, seed) => new ServeEpisode(task, seed),
    report: windowReport,
    stateOf: (episode: ServeEpisode | null, reset) =>
      episodeState(episode, reset, episode?.sloViolations() ?? 0),
    idleKnobs: ({ maskedKnobs = [] }) => maskedKnobs,
    describe: () => ({}),
    grade: gradeEpisode,
  });
}

/** Figures of an episode that states show. */
type StatedEpisode = Pick<ServeEpisode, 'task' | 'seed' | 'window' | 'phase' | 'done'> & {
  readonly totals: Pick<ServeEpisode['totals'], 'requestsServed' | 'reward'>;
};

/** Stands for the episode before the first reset. */
const NO_EPISODE: StatedEpisode = {
  task: SERVE_TASKS.static_workload,
  seed: 0,
  window: 0,
  phase: 'none',
  done: false,
  totals: { requestsServed: 0, reward: 0 },
};

/** State of an episode, simulated or real, that was reset with these options. */
export function episodeState(
  episode: StatedEpisode | null,
  reset: ResetOptions,
  sloViolations: number,
): ServeState {
  const { task, seed, totals, window, phase, done } = episode ?? NO_EPISODE;
  const { traffic, shift, rate_scale, trace } = reset as ServeScenario;
  const requests = task.source?.requests;
  return {
    task_id: task.id,
    traffic: traffic ?? null,
    trace: requests?.kind === 'trace' ? tracePlayed(trace, requests.trace) : null,
    shift: shift ?? null,
    rate_scale: rate_scale ?? 1,
    profile: task.profile,
    seed,
    total_requests_served: totals.requestsServed,
    total_slo_violations: sloViolations,
    cumulative_reward: totals.reward,
    elapsed_simulated_time_s: window * task.windowSeconds,
    workload_phase: phase,
    done,
  };
}

/** Grades an episode; see `gradeWindows`. The default configuration scores 0.20, the best constant one 0.50. */
export function gradeEpisode(record: EpisodeRecord<ServeAction>): Grade {
  return gradeWindows(record, {
    choose: chooseTask,
    drawRequests,
    start: (task, seed, requests) => new ServeEpisode(task, seed, { requests }),
    unplayedReward: () => -1,
    anchors: episodeAnchors,
    tuned: ({ constant }) => constant,
    shown: ['default', 'constant', 'planner', 'clairvoyant'],
    room: (taskId) => serveReturns.room(taskId),
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
  });
}
