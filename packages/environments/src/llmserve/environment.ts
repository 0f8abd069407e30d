import {
  defineEnvironment,
  type Environment,
  type EnvironmentDefinition,
  type ResetOptions,
  type StepResult,
  type TaskDescription,
} from '@servegym/openenv/definition';
import { requireMaskedKnobsHeld } from '../masked-knobs.ts';
import { requireOpen } from '../open-episode.ts';
import { readSeed } from '../reset-values.ts';
import { splitOfSeed, taskSplits } from '../splits.ts';
import { gradeEpisode } from './grader.ts';
import { tracePlayed } from './requests/trace-option.ts';
import { chooseTask, episodeSize, type ServeScenario, serveResetOptions } from './reset-options.ts';
import {
  type ServeAction,
  type ServeObservation,
  type ServeState,
  serveActionSchema,
  serveObservationSchema,
  serveStateSchema,
} from './schema.ts';
import { ServeEpisode } from './serve-episode.ts';
import { SHIFTS } from './shifts.ts';

import { findServeTask, serveTaskIds, serveTasks } from './task-registry.ts';
import { activeKnobs } from './tasks/active-knobs.ts';
import type { ServeTask } from './tasks/serve-task.ts';
import { windowReport } from './window-report.ts';

/** Text of `GET /metadata`, Markdown. */
const LLMSERVE_README = `# llmserve

You run an LLM inference server: two GPUs that serve one model behind a router. After each window of five seconds you see what
happened and set six knobs for the next. The server is simulated request by request with vLLM V1's scheduler, on an engine
profile fitted to measurements.

| action | values | costs |
|---|---|---|
| \`batch_cap\` | 1 to 512 | throughput against inter-token latency |
| \`kv_budget_fraction\` | 0.1 to 1 | a small pool preempts; a large one is charged for, and can run out of memory |
| \`speculation_depth\` | 0 to 8 | pays in small batches, not in large ones |
| \`quantization_tier\` | FP16, INT8, INT4 | quality; a change reloads the model |
| \`prefill_decode_split\` | true, false | a fixed division of the GPUs; a change drains them |
| \`priority_routing\` | true, false | the classes that wait |

Tasks: \`static_workload\` (find the right constant), \`bursty_workload\` (adapt, and pay for every switch),
\`adversarial_multitenant\` (three classes beside tenants whose memory swings).

The reward of a window is in [-1, 1]: tokens served and objectives met, less memory held, cost and lost quality.
\`POST /grader\` replays the episode; 0.20 is the task's default configuration, 0.50 the best that never changes, 0.95 a planner that
knows the traffic.

\`\`\`python
from openenv.core import GenericEnvClient

with GenericEnvClient(base_url="http://localhost:7860").sync() as env:
    result = env.reset(task_id="bursty_workload", seed=42)
    while not result.done:
        rush = result.observation["request_arrival_rate"] > 10
        result = env.step({
            "batch_cap": 128 if rush else 48, "kv_budget_fraction": 0.8 if rush else 0.2,
            "speculation_depth": 2 if rush else 3, "quantization_tier": "INT8",
            "prefill_decode_split": False, "priority_routing": True,
        })
\`\`\`
`;

/** One session of `llmserve`. */
class LlmServe implements Environment<ServeAction, ServeObservation, ServeState> {
  #episode: ServeEpisode | null = null;
  #scenario: ServeScenario = {};

  reset(options: ResetOptions): StepResult<ServeObservation> {
    const task = chooseTask(options);
    const episode = new ServeEpisode(task, readSeed(options));
    this.#episode = episode;
    this.#scenario = options as ServeScenario;
    return {
      observation: episode.observation(),
      reward: null,
      done: false,
      metadata: { ...windowReport(episode) },
    };
  }

  step(action: ServeAction): StepResult<ServeObservation> {
    const episode = requireOpen(this.#episode);
    const reward = episode.step(requireMaskedKnobsHeld(episode.task, action));
    return {
      observation: episode.observation(),
      reward,
      done: episode.done,
      metadata: { ...windowReport(episode) },
    };
  }

  state(): ServeState {
    const episode = this.#episode;
    return episode === null ? NO_EPISODE : episodeState(episode, this.#scenario, episode.sloViolations());
  }
}

/** Changes whenever the same task, seed and actions may give another episode. */
export const SERVE_VERSION = '0.4.0';

/** State of an episode, simulated or real, that was reset with `scenario`. */
export function episodeState(
  episode: Pick<ServeEpisode, 'task' | 'seed' | 'window' | 'phase' | 'done'> & {
    readonly totals: Pick<ServeEpisode['totals'], 'requestsServed' | 'reward'>;
  },
  { traffic, shift, rate_scale, trace }: ServeScenario,
  sloViolations: number,
): ServeState {
  const { task, seed, totals, window } = episode;
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
    workload_phase: episode.phase,
    done: episode.done,
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
    version: `${SERVE_VERSION}${serveTasks.versionMark()}`,
    name: 'llmserve',
    description:
      'Run an LLM inference server: each window shows queue, latency, KV memory and cost; the action sets batch cap, KV budget, speculation depth, quantization, prefill/decode split and priority routing for the next.',
    readme: LLMSERVE_README,
    action: serveActionSchema,
    observation: serveObservationSchema,
    state: serveStateSchema,
    resetOptions: serveResetOptions(),
    splits: taskSplits(serveTaskIds(), SHIFTS),
    splitOf: (options) => splitOfSeed(readSeed(options)),
    tasks: serveTaskIds().map((id) => describeTask(findServeTask(id) as ServeTask)),
    episodeSize: episodeSize,
    create: () => new LlmServe(),
    grade: (record) => gradeEpisode(record),
  });
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
