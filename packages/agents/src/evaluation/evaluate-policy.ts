import { SERVE_TASKS, type ServeAction, type ServeObservation, type TaskId } from '@servegym/environments';
import { type PlayableEnvironment, playEpisode } from '../play-episode.ts';
import type { ServePolicy } from '../policies/catalogue.ts';
import { interquartileMean } from './interquartile-mean.ts';
import { type Interval, stratifiedBootstrap } from './stratified-bootstrap.ts';

/** What an evaluation needs of an environment: the `llmserve` definition has it. */
export interface EvaluatedEnvironment {
  create(): PlayableEnvironment<ServeAction, ServeObservation>;
  /** Grades an episode from its seed and actions; `score` lies strictly inside (0, 1). */
  grade?(record: {
    readonly reset: { readonly task_id: string; readonly seed: number };
    readonly actions: readonly ServeAction[];
  }): { readonly score: number } | Promise<{ readonly score: number }>;
}

/** What to evaluate on. */
export interface EvaluationPlan {
  readonly taskIds: readonly TaskId[];
  /** Seeds of the traffic, the same for every task: policies given the same seeds are compared in pairs. */
  readonly seeds: readonly number[];
  /** Called after each episode. */
  readonly onEpisode?: (episode: EpisodeResult, finished: number, planned: number) => void;
}

/** One graded episode. */
export interface EpisodeResult {
  readonly taskId: TaskId;
  readonly seed: number;
  /** The environment's grade, strictly inside (0, 1). */
  readonly score: number;
  /** Sum of the rewards. */
  readonly return: number;
  /** Mean over the windows of the share of requests inside their SLO. */
  readonly sloCompliance: number;
  /** USD for 1,000 output tokens over the whole episode; when there were none, USD for the episode. */
  readonly costPer1k: number;
  readonly preemptions: number;
  readonly windows: number;
}

/** A figure over several episodes. */
export interface Estimate {
  readonly mean: number;
  /** Interquartile mean. */
  readonly iqm: number;
  /** 95 % interval of the interquartile mean, by the bootstrap, stratified by task. */
  readonly ci95: Interval;
}

/** How a policy did on one task. */
export interface TaskEvaluation {
  readonly taskId: TaskId;
  readonly score: Estimate;
  readonly return: Estimate;
  /** Means over the episodes. */
  readonly sloCompliance: number;
  readonly costPer1k: number;
  readonly preemptions: number;
  /** Windows that policy and environment played in a second of wall time, grading not counted. */
  readonly windowsPerSecond: number;
  readonly episodes: readonly EpisodeResult[];
}

/** How a policy did. */
export interface Evaluation {
  readonly policy: string;
  readonly tasks: readonly TaskEvaluation[];
  /** Score over all tasks. */
  readonly overall: Estimate;
}

/** Plays and grades one episode for each task and seed. */
export async function evaluatePolicy(
  environment: EvaluatedEnvironment,
  policy: ServePolicy,
  { taskIds, seeds, onEpisode }: EvaluationPlan,
): Promise<Evaluation> {
  if (taskIds.length === 0) throw new RangeError('Expected at least one task to evaluate on');
  if (seeds.length === 0) throw new RangeError('Expected at least one seed to evaluate on');
  const grade = environment.grade?.bind(environment);
  if (!grade) throw new TypeError('Expected an environment that grades its episodes');
  const planned = taskIds.length * seeds.length;
  let finished = 0;
  const tasks: TaskEvaluation[] = [];
  const instance = environment.create();
  try {
    for (const taskId of taskIds) {
      const episodes: EpisodeResult[] = [];
      let wallSeconds = 0;
      for (const seed of seeds) {
        const played = await playAndGrade(instance, grade, policy, taskId, seed);
        episodes.push(played.result);
        wallSeconds += played.wallSeconds;
        finished++;
        onEpisode?.(played.result, finished, planned);
      }
      tasks.push(summarize(taskId, episodes, wallSeconds));
    }
  } finally {
    await instance.close?.();
  }
  const scores = tasks.map((task) => task.episodes.map((episode) => episode.score));
  return { policy: policy.name, tasks, overall: estimate(scores) };
}

async function playAndGrade(
  instance: PlayableEnvironment<ServeAction, ServeObservation>,
  grade: NonNullable<EvaluatedEnvironment['grade']>,
  policy: ServePolicy,
  taskId: TaskId,
  seed: number,
): Promise<{ result: EpisodeResult; wallSeconds: number }> {
  let slo = 0;
  let tokens = 0;
  let cost = 0;
  let preemptions = 0;
  const { defaultAction, windowSeconds } = SERVE_TASKS[taskId];
  const plan = { taskId, seed, initialAction: defaultAction };
  const played = await playEpisode(instance, policy, plan, ({ observation }) => {
    slo += observation.slo_compliance_rate;
    const emitted = observation.throughput_tps * windowSeconds;
    tokens += emitted;
    // A window that emits nothing reports what the window itself costs.
    cost += observation.estimated_cost_per_1k * (emitted > 0 ? emitted / 1000 : 1);
    preemptions += observation.eviction_events;
  });
  const { score } = await grade({ reset: { task_id: taskId, seed }, actions: played.actions });
  const windows = played.actions.length;
  const result = {
    taskId,
    seed,
    score,
    return: played.return,
    sloCompliance: slo / windows,
    costPer1k: tokens > 0 ? (cost / tokens) * 1000 : cost,
    preemptions,
    windows,
  };
  return { result, wallSeconds: played.wallSeconds };
}

function summarize(taskId: TaskId, episodes: readonly EpisodeResult[], wallSeconds: number): TaskEvaluation {
  return {
    taskId,
    score: estimate([episodes.map((episode) => episode.score)]),
    return: estimate([episodes.map((episode) => episode.return)]),
    sloCompliance: mean(episodes.map((episode) => episode.sloCompliance)),
    costPer1k: mean(episodes.map((episode) => episode.costPer1k)),
    preemptions: mean(episodes.map((episode) => episode.preemptions)),
    windowsPerSecond: episodes.reduce((sum, episode) => sum + episode.windows, 0) / wallSeconds,
    episodes,
  };
}

function estimate(strata: readonly (readonly number[])[]): Estimate {
  const values = strata.flat();
  return {
    mean: mean(values),
    iqm: interquartileMean(values),
    ci95: stratifiedBootstrap(strata, interquartileMean),
  };
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
