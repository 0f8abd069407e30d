import { type Interval, interquartileMean, mean, stratifiedBootstrap } from '@servegym/simulator/statistics';
import { type AnchoredReturn, anchorsOf, type GainFigures, gainFigures, type ReturnAnchors } from './gain.ts';
import { playEpisode } from './play-episode.ts';
import type { PlayableEnvironment, ServiceFigures } from './playable-environment.ts';
import type { AsyncPolicy } from './policy.ts';

/** Tasks and seeds of an evaluation. */
export interface EvaluationPlan {
  readonly taskIds: readonly (string | number)[];
  /** Seeds of the traffic, the same for every task: policies given the same seeds are compared in pairs. */
  readonly seeds: readonly number[];
  /** Called after each episode. */
  readonly onEpisode?: (episode: EpisodeResult, finished: number, planned: number) => void;
}

/** One graded episode. */
export interface EpisodeResult extends ServiceFigures {
  readonly taskId: string | number;
  readonly seed: number;
  /** The environment's grade, strictly inside (0, 1). */
  readonly score: number;
  /** Sum of the rewards. */
  readonly return: number;
  /** Return that a planner who knows the traffic would have had more; `null` where the environment does not tell. */
  readonly regret: number | null;
  /** `null` where the environment gives none. */
  readonly anchors: ReturnAnchors | null;
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

/** Evaluation of a policy on one task. */
export interface TaskEvaluation {
  readonly taskId: string | number;
  readonly score: Estimate;
  readonly return: Estimate;
  /** `null` where the environment does not tell. */
  readonly regret: Estimate | null;
  /** Of the returns; `null` where the environment gives no anchors. */
  readonly gains: GainFigures | null;
  /** Means over the episodes. */
  readonly sloCompliance: number;
  readonly costPer1k: number;
  readonly preemptions: number;
  /** Windows that policy and environment played in a second of wall time, grading not counted. */
  readonly windowsPerSecond: number;
  readonly episodes: readonly EpisodeResult[];
}

/** Evaluation of a policy. */
export interface Evaluation {
  readonly policy: string;
  readonly tasks: readonly TaskEvaluation[];
  /** Score over all tasks. */
  readonly overall: Estimate;
  /** Of the returns of all tasks; `null` where the environment gives no anchors. */
  readonly gains: GainFigures | null;
}

/** The graded episodes of one task. */
export interface PlayedTask {
  readonly taskId: string | number;
  readonly episodes: readonly EpisodeResult[];
  /** Wall time of the play, grading not counted, s. */
  readonly wallSeconds: number;
}

/** Plays and grades one episode for each task and seed. */
export async function evaluatePolicy<Action, Observation>(
  environment: PlayableEnvironment<Action, Observation>,
  policy: AsyncPolicy<Action, Observation>,
  { taskIds, seeds, onEpisode }: EvaluationPlan,
): Promise<Evaluation> {
  const planned = taskIds.length * seeds.length;
  let finished = 0;
  const played: PlayedTask[] = [];
  for (const taskId of taskIds) {
    const task = await playTask(environment, policy, taskId, seeds, (episode) => {
      finished++;
      onEpisode?.(episode, finished, planned);
    });
    played.push(task);
  }
  return evaluationOf(policy.name, played);
}

/** Plays and grades an episode of one task for each seed. */
export async function playTask<Action, Observation>(
  environment: PlayableEnvironment<Action, Observation>,
  policy: AsyncPolicy<Action, Observation>,
  taskId: string | number,
  seeds: readonly number[],
  onEpisode?: (episode: EpisodeResult) => void,
): Promise<PlayedTask> {
  if (seeds.length === 0) throw new RangeError('Expected at least one seed to evaluate on');
  const { grade, meter } = environment;
  if (!grade || !meter) throw new TypeError('Expected an environment that grades its episodes');
  const instance = environment.create();
  const episodes: EpisodeResult[] = [];
  let wallSeconds = 0;
  try {
    for (const seed of seeds) {
      const service = meter(taskId);
      const plan = {
        taskId,
        seed,
        initialAction: environment.initialAction(taskId),
        resetOptions: environment.scenario,
      };
      const played = await playEpisode(instance, policy, plan, (window) => service.see(window));
      const { score, breakdown } = await grade({ reset: { task_id: taskId, seed }, actions: played.actions });
      const episode = {
        ...{ taskId, seed, score, return: played.return, windows: played.actions.length },
        regret: typeof breakdown.regret === 'number' ? breakdown.regret : null,
        anchors: anchorsOf(breakdown),
        ...service.figures(),
      };
      episodes.push(episode);
      wallSeconds += played.wallSeconds;
      onEpisode?.(episode);
    }
  } finally {
    await instance.close?.();
  }
  return { taskId, episodes, wallSeconds };
}

/** Evaluates the episodes of a policy, wherever they were played. */
export function evaluationOf(policy: string, played: readonly PlayedTask[]): Evaluation {
  if (played.length === 0) throw new RangeError('Expected at least one task to evaluate on');
  const tasks = played.map(({ taskId, episodes, wallSeconds }) => summarize(taskId, episodes, wallSeconds));
  return { policy, tasks, ...overTasks(tasks) };
}

/** The evaluations of a policy under several conditions as one, whose task names say the condition too. */
export function joinEvaluations(evaluations: ReadonlyMap<string, Evaluation>): Evaluation {
  const tasks = [...evaluations].flatMap(([condition, evaluation]) =>
    evaluation.tasks.map((task) => ({ ...task, taskId: `${task.taskId} ${condition}` })),
  );
  const [first] = evaluations.values();
  if (first === undefined) throw new RangeError('Expected at least one evaluation');
  return { policy: first.policy, tasks, ...overTasks(tasks) };
}

function overTasks(tasks: readonly TaskEvaluation[]): Pick<Evaluation, 'overall' | 'gains'> {
  return {
    overall: estimate(tasks.map(({ episodes }) => episodes.map(({ score }) => score))),
    gains: gainsOf(tasks.map(({ episodes }) => episodes)),
  };
}

function gainsOf(tasks: readonly (readonly EpisodeResult[])[]): GainFigures | null {
  const isAnchored = tasks.flat().every(({ anchors }) => anchors !== null);
  return isAnchored ? gainFigures(tasks as readonly (readonly AnchoredReturn[])[]) : null;
}

function summarize(
  taskId: string | number,
  episodes: readonly EpisodeResult[],
  wallSeconds: number,
): TaskEvaluation {
  const regrets = episodes.flatMap(({ regret }) => (regret === null ? [] : [regret]));
  return {
    taskId,
    score: estimate([episodes.map((episode) => episode.score)]),
    return: estimate([episodes.map((episode) => episode.return)]),
    regret: regrets.length === episodes.length ? estimate([regrets]) : null,
    gains: gainsOf([episodes]),
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
