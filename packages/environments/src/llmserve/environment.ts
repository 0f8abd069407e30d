import {
  defineEnvironment,
  type Environment,
  EnvironmentError,
  type ResetOptions,
  type StepResult,
} from '@servegym/openenv/definition';
import { z } from 'zod';
import { gradeEpisode } from './grader.ts';
import { chooseTask, readSeed } from './reset-options.ts';
import {
  type ServeAction,
  type ServeObservation,
  type ServeState,
  serveActionSchema,
  serveObservationSchema,
  serveStateSchema,
  TASK_IDS,
} from './schema.ts';
import { ServeEpisode } from './serve-episode.ts';
import { SERVE_TASKS } from './tasks/serve-tasks.ts';
import { windowReport } from './window-report.ts';

/** One session of `llmserve`. */
class LlmServe implements Environment<ServeAction, ServeObservation, ServeState> {
  private episode: ServeEpisode | null = null;

  reset(options: ResetOptions): StepResult<ServeObservation> {
    const task = chooseTask(options);
    const episode = new ServeEpisode(task, readSeed(options));
    this.episode = episode;
    return {
      observation: episode.observation(),
      reward: null,
      done: false,
      metadata: { ...windowReport(episode) },
    };
  }

  step(action: ServeAction): StepResult<ServeObservation> {
    const episode = this.current();
    if (episode.done) {
      throw new EnvironmentError(
        'EPISODE_OVER',
        `The episode ended after ${episode.window} windows: reset to play another`,
      );
    }
    const reward = episode.step(action);
    return {
      observation: episode.observation(),
      reward,
      done: episode.done,
      metadata: { ...windowReport(episode) },
    };
  }

  state(): ServeState {
    const { episode } = this;
    if (episode === null) return NO_EPISODE;
    const { task, seed, totals, window } = episode;
    return {
      task_id: task.id,
      seed,
      total_requests_served: totals.requestsServed,
      total_slo_violations: totals.sloViolations,
      cumulative_reward: totals.reward,
      elapsed_simulated_time_s: window * task.windowSeconds,
      workload_phase: episode.phase,
      done: episode.done,
    };
  }

  private current(): ServeEpisode {
    if (this.episode === null)
      throw new EnvironmentError('NOT_RESET', 'No episode has been started: call reset first');
    return this.episode;
  }
}

/** The state before the first reset. */
const NO_EPISODE: ServeState = {
  task_id: 'static_workload',
  seed: 0,
  total_requests_served: 0,
  total_slo_violations: 0,
  cumulative_reward: 0,
  elapsed_simulated_time_s: 0,
  workload_phase: 'none',
  done: false,
};

/** Run a simulated LLM server on two GPUs: see queue, latency, memory and cost each window, set six knobs for the next. */
export const llmserve = defineEnvironment<ServeAction, ServeObservation, ServeState>({
  id: 'llmserve',
  version: '0.1.0',
  name: 'llmserve',
  description:
    'Run an LLM inference server: each window shows queue, latency, KV memory and cost; the action sets batch cap, KV budget, speculation depth, quantization, prefill/decode split and priority routing for the next.',
  action: serveActionSchema,
  observation: serveObservationSchema,
  state: serveStateSchema,
  resetOptions: z.object({ task_id: z.enum(TASK_IDS).default('static_workload') }),
  tasks: TASK_IDS.map((id) => {
    const { name, difficulty, description, windows, windowSeconds, defaultAction } = SERVE_TASKS[id];
    return {
      id,
      name,
      difficulty,
      description,
      windows,
      window_seconds: windowSeconds,
      default_action: defaultAction,
    };
  }),
  create: () => new LlmServe(),
  grade: gradeEpisode,
});
