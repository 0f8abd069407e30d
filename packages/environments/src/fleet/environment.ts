import {
  defineEnvironment,
  type Environment,
  type EnvironmentDefinition,
  type ResetOptions,
  type StepResult,
  type TaskDescription,
} from '@servegym/openenv/definition';
import { tracePlayed } from '../llmserve/requests/trace-option.ts';
import { requireMaskedKnobsHeld } from '../masked-knobs.ts';
import { requireOpen } from '../open-episode.ts';
import { readSeed } from '../reset-values.ts';
import { splitOfSeed, taskSplits } from '../splits.ts';
import { FleetEpisode } from './fleet-episode.ts';
import { gradeFleetEpisode } from './grader.ts';
import { chooseFleetTask, type FleetScenario, fleetEpisodeSize, fleetResetOptions } from './reset-options.ts';
import {
  FLEET_KNOBS,
  FLEET_TASK_IDS,
  type FleetAction,
  type FleetObservation,
  type FleetState,
  fleetActionSchema,
  fleetObservationSchema,
  fleetStateSchema,
} from './schema.ts';
import { FLEET_SHIFTS } from './shifts.ts';
import { FLEET_TASKS, fleetTasks } from './task-registry.ts';
import { type FleetTask, idleFleetKnobs } from './tasks/fleet-task.ts';
import { fleetWindowReport } from './window-report.ts';

/** Text of `GET /metadata`, Markdown. */
const FLEET_README = `# fleet

You run a fleet of vLLM replicas behind a gateway. After each window of 30 s you see the metrics of the fleet and set nine
knobs for the next. Every request is simulated with vLLM V1's scheduler.

| action | values | costs |
|---|---|---|
| \`replicas\` | 0 to 32 | each is billed from the moment it is asked for and serves after a cold start; one too many drains |
| \`second_replicas\` | 0 to 32 | the same on other GPUs; without any in the task they wait |
| \`prefill_replicas\` | 0 to 16 | the others decode only what these send them |
| \`routing_queue\`, \`routing_cache\`, \`routing_prefix\` | 0 to 1 | weights of few requests, free KV blocks and known prefixes |
| \`admission_seconds\` | 0 to 600 | seconds of queue above which best effort, then batch, is refused |
| \`max_num_batched_tokens\` | 512 to 16384 | a large budget prefills fast and holds up what decodes |
| \`max_num_active_seqs\` | 1 to 512 | many sequences decode slowly together |

Tasks: \`diurnal\` (chat that follows the hour of the day), \`flash_crowds\` (surges shorter and longer than a cold start),
\`agents\` (conversations whose prompts grow, retrieval, and long batch prompts).

The reward of a window is in units of the task's \`reference_usd\`: the price of the tokens whose requests met their
objectives, less the bill of the GPUs. \`POST /grader\` replays the episode; 0.20 is Kubernetes' HorizontalPodAutoscaler, 0.50 the
best tuned rule, 0.95 a planner that knows the traffic.

\`\`\`python
from openenv.core import GenericEnvClient

with GenericEnvClient(base_url="http://localhost:7860/fleet").sync() as env:
    result = env.reset(task_id="flash_crowds", seed=42)
    while not result.done:
        seen = result.observation
        busy = seen["num_requests_running"] + seen["num_requests_waiting"]
        result = env.step({
            "replicas": min(seen["server"]["max_replicas"], 1 + busy // 40), "prefill_replicas": 0, "routing_queue": 1,
            "routing_cache": 0, "routing_prefix": 1, "admission_seconds": 10, "max_num_batched_tokens": 2048,
            "max_num_active_seqs": 256,
        })
\`\`\`
`;

/** Changes whenever the same task, seed and actions may give another episode or grade. */
export const FLEET_VERSION = '0.2.0';

/** One session of `fleet`. */
class FleetEnvironment implements Environment<FleetAction, FleetObservation, FleetState> {
  #episode: FleetEpisode | null = null;
  #scenario: FleetScenario = {};

  reset(options: ResetOptions): StepResult<FleetObservation> {
    const episode = new FleetEpisode(chooseFleetTask(options), readSeed(options));
    this.#episode = episode;
    this.#scenario = options as FleetScenario;
    return answer(episode, null);
  }

  step(action: FleetAction): StepResult<FleetObservation> {
    const episode = requireOpen(this.#episode);
    return answer(episode, episode.step(requireMaskedKnobsHeld(episode.task, action)));
  }

  state(): FleetState {
    const episode = this.#episode;
    return episode === null ? NO_EPISODE : episodeState(episode, this.#scenario);
  }
}

function answer(episode: FleetEpisode, reward: number | null): StepResult<FleetObservation> {
  return {
    observation: episode.observation(),
    reward,
    done: episode.done,
    metadata: { ...fleetWindowReport(episode) },
  };
}

function episodeState(
  { task, seed, totals, window, done }: FleetEpisode,
  { trace, shift, rate_scale }: FleetScenario,
): FleetState {
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

/** The state before the first reset. */
const NO_EPISODE: FleetState = {
  task_id: FLEET_TASK_IDS[0],
  trace: null,
  shift: null,
  rate_scale: 1,
  profile: FLEET_TASKS[FLEET_TASK_IDS[0]].profile,
  second_profile: null,
  seed: 0,
  total_requests: 0,
  total_completed: 0,
  total_attained: 0,
  total_refused: 0,
  revenue_usd: 0,
  gpu_usd: 0,
  gpu_hours: 0,
  cumulative_reward: 0,
  elapsed_simulated_time_s: 0,
  done: false,
};

/** The environment with the tasks that this process knows now. */
export function fleetEnvironment(): EnvironmentDefinition<FleetAction, FleetObservation, FleetState> {
  return defineEnvironment<FleetAction, FleetObservation, FleetState>({
    id: 'fleet',
    version: `${FLEET_VERSION}${fleetTasks.versionMark()}`,
    name: 'fleet',
    description:
      'Run a fleet of LLM inference servers: each window of 30 s shows demand, queues, caches, latencies and cost; the action sets replicas, prefill replicas, routing weights, admission, token budget and sequence cap for the next.',
    readme: FLEET_README,
    action: fleetActionSchema,
    observation: fleetObservationSchema,
    state: fleetStateSchema,
    resetOptions: fleetResetOptions(),
    splits: taskSplits(fleetTasks.ids(), FLEET_SHIFTS),
    splitOf: (options) => splitOfSeed(readSeed(options)),
    tasks: fleetTasks.ids().map((id) => describeTask(fleetTasks.find(id)!)),
    episodeSize: fleetEpisodeSize,
    create: () => new FleetEnvironment(),
    grade: gradeFleetEpisode,
  });
}

function describeTask(task: FleetTask): TaskDescription {
  const { id, name, difficulty, description, windows, windowSeconds, defaultAction } = task;
  const maskedKnobs = idleFleetKnobs(task);
  return {
    ...{ id, name, difficulty, description, windows, window_seconds: windowSeconds },
    default_action: defaultAction,
    active_actions: FLEET_KNOBS.filter((knob) => !maskedKnobs.includes(knob)),
    masked_actions: maskedKnobs,
    max_replicas: task.maxReplicas,
    objectives: task.objectives,
    prices: task.prices,
    reference_usd: task.referenceUsd,
  };
}
