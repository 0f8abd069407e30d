import { createHash } from 'node:crypto';
import {
  defineEnvironment,
  type Environment,
  type EnvironmentDefinition,
  EnvironmentError,
  type ResetOptions,
  type StepResult,
  type TaskDescription,
} from '@servegym/openenv/definition';
import { gradeEpisode } from './grader.ts';
import { LLMSERVE_README } from './readme.ts';
import { chooseTask, episodeSize, readSeed, type ServeScenario, serveResetOptions } from './reset-options.ts';
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
import { findServeTask, serveTaskIds } from './task-registry.ts';
import { taskSplits } from './task-splits.ts';
import { activeKnobs, requireMaskedKnobsHeld } from './tasks/masked-knobs.ts';
import type { ServeTask } from './tasks/serve-task.ts';
import { windowReport } from './window-report.ts';

/** One session of `llmserve`. */
class LlmServe implements Environment<ServeAction, ServeObservation, ServeState> {
  private episode: ServeEpisode | null = null;
  private scenario: ServeScenario = {};

  reset(options: ResetOptions): StepResult<ServeObservation> {
    const task = chooseTask(options);
    const episode = new ServeEpisode(task, readSeed(options));
    this.episode = episode;
    this.scenario = options as ServeScenario;
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
    const reward = episode.step(requireMaskedKnobsHeld(episode.task, action));
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
      ...scenarioState(this.scenario, task),
      seed,
      total_requests_served: totals.requestsServed,
      total_slo_violations: episode.sloViolations(),
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

/** Changes whenever the same task, seed and actions may give another episode. */
const VERSION = '0.3.0';

/** What is played beyond a task and a seed, as the state tells it. */
export function scenarioState({ traffic, shift, rate_scale, trace }: ServeScenario, task: ServeTask) {
  const requests = task.source?.requests;
  const name = typeof trace === 'string' ? trace.split('@')[0] : 'columns';
  return {
    traffic: traffic ?? null,
    trace: requests?.kind === 'trace' ? `${name}@sha256:${requests.trace.digest}` : null,
    shift: shift ?? null,
    rate_scale: rate_scale ?? 1,
    profile: task.profile,
  };
}

/** The state before the first reset. */
export const NO_EPISODE: ServeState = {
  task_id: 'static_workload',
  traffic: null,
  trace: null,
  shift: null,
  rate_scale: 1,
  profile: findServeTask('static_workload')!.profile,
  seed: 0,
  total_requests_served: 0,
  total_slo_violations: 0,
  cumulative_reward: 0,
  elapsed_simulated_time_s: 0,
  workload_phase: 'none',
  done: false,
};

/**
 * The environment with the tasks and traces that this process knows now: those of `addServeTask` and `addServeTrace`
 * beside the three.
 */
export function serveEnvironment(): EnvironmentDefinition<ServeAction, ServeObservation, ServeState> {
  return defineEnvironment<ServeAction, ServeObservation, ServeState>({
    id: 'llmserve',
    version: `${VERSION}${ownTasksMark()}`,
    name: 'llmserve',
    description:
      'Run an LLM inference server: each window shows queue, latency, KV memory and cost; the action sets batch cap, KV budget, speculation depth, quantization, prefill/decode split and priority routing for the next.',
    readme: LLMSERVE_README,
    action: serveActionSchema,
    observation: serveObservationSchema,
    state: serveStateSchema,
    resetOptions: serveResetOptions(),
    splits: taskSplits(serveTaskIds()),
    tasks: serveTaskIds().map((id) => describeTask(findServeTask(id) as ServeTask)),
    episodeSize: episodeSize,
    create: () => new LlmServe(),
    grade: (record) => gradeEpisode(record),
  });
}

/** Tasks of one's own are part of the version: a session on one is not taken up again on what its file has become. */
function ownTasksMark(): string {
  const own = serveTaskIds().slice(TASK_IDS.length).map(findServeTask);
  if (own.length === 0) return '';
  return `+${createHash('sha256').update(JSON.stringify(own)).digest('hex').slice(0, 12)}`;
}

function describeTask(task: ServeTask): TaskDescription {
  const { id, name, difficulty, description, windows, windowSeconds, defaultAction } = task;
  return {
    id,
    name,
    difficulty,
    description,
    windows,
    window_seconds: windowSeconds,
    default_action: defaultAction,
    active_actions: activeKnobs(task),
    masked_actions: task.maskedKnobs ?? [],
  };
}

/** Run a simulated LLM server on two GPUs: see queue, latency, memory and cost each window, set six knobs for the next. */
export const llmserve = serveEnvironment();
