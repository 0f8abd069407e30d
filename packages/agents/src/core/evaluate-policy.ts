import { interquartileMean, mean, stratifiedBootstrap } from '@servegym/simulator/statistics';
import type { PlayableEnvironment, ServiceFigures } from './playable.ts';
import { type AsyncPolicy, playEpisode } from './policy.ts';

/** Returns that the return of an episode is held against, on the same traffic. */
export interface ReturnAnchors {
  readonly default: number;
  /** Of a planner that knows the traffic. */
  readonly clairvoyant: number;
  /** True when `clairvoyant` is an estimate. */
  readonly estimated: boolean;
}

/** The return of an episode and its anchors. */
export interface AnchoredReturn {
  readonly return: number;
  readonly anchors: ReturnAnchors;
}

/** Returns of several episodes: 0 is the default configuration, 1 a planner that knows the traffic; nothing is floored. */
export type GainFigures = Readonly<NonNullable<ReturnType<typeof gainFigures>>>;

/** Returns that differ by less than this, relative to the default's, are equal: replays may add up in another order. */
const ROUNDING = 1e-9;

/**
 * Gain of each episode of a task over the default, in units of the mean gap between default and clairvoyant over these
 * episodes, so that traffic with a small gap weighs no more than other traffic; `null` when the gap is not above 0.
 */
export function episodeGains(episodes: readonly AnchoredReturn[]): readonly number[] | null {
  const gap = mean(episodes.map(({ anchors }) => anchors.clairvoyant - anchors.default));
  if (!(gap > 0)) return null;
  return episodes.map(({ return: total, anchors }) => (total - anchors.default) / gap);
}

/** Figures over the episodes of some tasks; `null` when a task has no gap between default and clairvoyant. */
export function gainFigures(tasks: readonly (readonly AnchoredReturn[])[]) {
  const gains: (readonly number[])[] = [];
  for (const episodes of tasks) {
    const ofTask = episodeGains(episodes);
    if (ofTask === null) return null;
    gains.push(ofTask);
  }
  const all = gains.flat().sort((a, b) => a - b);
  const episodes = tasks.flat();
  return {
    /** Gain of the mean return, with its 95 % interval by the bootstrap, stratified by task. */
    gain: { mean: mean(all), ci95: stratifiedBootstrap(gains, mean) },
    /** Mean gain of the tenth of the episodes with the least gain. */
    worst10: mean(all.slice(0, Math.ceil(all.length / 10))),
    /** Share of the episodes that return less than the default configuration. */
    belowDefault: mean(episodes.map(isBelowDefault)),
    /** True when a clairvoyant return is an estimate. */
    estimated: episodes.some(({ anchors }) => anchors.estimated),
  };
}

function isBelowDefault({ return: total, anchors: { default: standard } }: AnchoredReturn): number {
  return total < standard - ROUNDING * Math.max(1, Math.abs(standard)) ? 1 : 0;
}

/** The anchors in the breakdown of a grade; `null` where the environment gives none. */
export function anchorsOf({ anchors }: Readonly<Record<string, unknown>>): ReturnAnchors | null {
  const { default: standard, clairvoyant, estimated } = Object(anchors) as Partial<ReturnAnchors>;
  if (typeof standard !== 'number' || typeof clairvoyant !== 'number') return null;
  return { default: standard, clairvoyant, estimated: estimated === true };
}

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
export type Estimate = Readonly<ReturnType<typeof estimate>>;

/** Evaluation of a policy on one task. */
export type TaskEvaluation = Readonly<ReturnType<typeof summarize>>;

/** Evaluation of a policy. */
export type Evaluation = Readonly<ReturnType<typeof evaluationOf>>;

/** The graded episodes of one task. `wallSeconds`: wall time of the play, grading not counted, s. */
export type PlayedTask = Readonly<Awaited<ReturnType<typeof playTask>>>;

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
    const onPlayed = (episode: EpisodeResult) => onEpisode?.(episode, ++finished, planned);
    played.push(await playTask(environment, policy, taskId, seeds, { onEpisode: onPlayed }));
  }
  return evaluationOf(policy.name, played);
}

/** Plays and grades an episode of one task for each seed. */
export async function playTask<Action, Observation>(
  environment: PlayableEnvironment<Action, Observation>,
  policy: AsyncPolicy<Action, Observation>,
  taskId: string | number,
  seeds: readonly number[],
  watcher: { readonly onEpisode?: (episode: EpisodeResult) => void; readonly onWindow?: () => void } = {},
) {
  if (seeds.length === 0) throw new RangeError('Expected at least one seed to evaluate on');
  const { grade, meter } = environment;
  if (!grade || !meter) throw new TypeError('Expected an environment that grades its episodes');
  const instance = environment.create();
  const episodes: EpisodeResult[] = [];
  let wallSeconds = 0;
  try {
    for (const seed of seeds) {
      const service = meter(taskId);
      const initialAction = environment.initialAction(taskId);
      const plan = { taskId, seed, initialAction, resetOptions: environment.scenario };
      const played = await playEpisode(instance, policy, plan, (window) => {
        service.see(window);
        watcher.onWindow?.();
      });
      const { score, breakdown } = await grade({ reset: { task_id: taskId, seed }, actions: played.actions });
      const episode = {
        ...{ taskId, seed, score, return: played.return, windows: played.actions.length },
        regret: typeof breakdown.regret === 'number' ? breakdown.regret : null,
        anchors: anchorsOf(breakdown),
        ...service.figures(),
      };
      episodes.push(episode);
      wallSeconds += played.wallSeconds;
      watcher.onEpisode?.(episode);
    }
  } finally {
    await instance.close?.();
  }
  return { taskId, episodes, wallSeconds };
}

/** Evaluates the episodes of a policy, wherever they were played. */
export function evaluationOf(policy: string, played: readonly PlayedTask[]) {
  if (played.length === 0) throw new RangeError('Expected at least one task to evaluate on');
  const tasks: readonly TaskEvaluation[] = played.map(summarize);
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

function overTasks(tasks: readonly TaskEvaluation[]) {
  return {
    /** Score over all tasks. */
    overall: estimate(tasks.map(({ episodes }) => episodes.map(({ score }) => score))),
    /** Of the returns of all tasks; `null` where the environment gives no anchors. */
    gains: gainsOf(tasks.map(({ episodes }) => episodes)),
  };
}

function gainsOf(tasks: readonly (readonly EpisodeResult[])[]): GainFigures | null {
  const isAnchored = tasks.flat().every(({ anchors }) => anchors !== null);
  return isAnchored ? gainFigures(tasks as readonly (readonly AnchoredReturn[])[]) : null;
}

function summarize({ taskId, episodes, wallSeconds }: PlayedTask) {
  const regrets = episodes.flatMap(({ regret }) => (regret === null ? [] : [regret]));
  return {
    taskId,
    score: estimate([episodes.map((episode) => episode.score)]),
    return: estimate([episodes.map((episode) => episode.return)]),
    /** `null` where the environment does not tell. */
    regret: regrets.length === episodes.length ? estimate([regrets]) : null,
    gains: gainsOf([episodes]),
    // Means over the episodes.
    sloCompliance: mean(episodes.map((episode) => episode.sloCompliance)),
    costPer1k: mean(episodes.map((episode) => episode.costPer1k)),
    preemptions: mean(episodes.map((episode) => episode.preemptions)),
    /** Windows that policy and environment played in a second of wall time, grading not counted. */
    windowsPerSecond: episodes.reduce((sum, episode) => sum + episode.windows, 0) / wallSeconds,
    episodes,
  };
}

function estimate(strata: readonly (readonly number[])[]) {
  const values = strata.flat();
  return {
    mean: mean(values),
    /** Interquartile mean. */
    iqm: interquartileMean(values),
    /** 95 % interval of the interquartile mean, by the bootstrap, stratified by task. */
    ci95: stratifiedBootstrap(strata, interquartileMean),
  };
}
