import {
  type EpisodeRequests,
  holdMaskedKnobs,
  llmserve,
  type ServeAction,
  ServeEpisode,
  type ServeKnob,
  type ServeTask,
} from '@servegym/environments';
import { RandomStream } from '@servegym/simulator';
import { actionKey, distinctActions, KNOB_GRID, withKnob } from '../planning/knob-grid.ts';
import { trainingTraces } from './learning-environment.ts';
import { knownTask } from './trained-for.ts';

/** Traces that every value of a knob is tried on, and those that the best of them are told apart on. */
const TRACES = { few: 4, many: 24 };
/** Values of a knob that are told apart on many traces. */
const FINALISTS = 3;
/** Configurations drawn to begin with. */
const DRAWN = 48;
/** Of them, so many are left after each round, which has four times the traces of the one before. */
const LEFT = [12, 2];
/** Windows of an episode whose traffic is all of one phase. */
const PHASE_WINDOWS = 24;

/** Task and traces of the search. */
export interface TuneConstantOptions {
  readonly taskId: string;
  /** Decides which traces of the training split are played, and where the search begins. */
  readonly seed: number;
  /** Default 4 and 24. */
  readonly traces?: typeof TRACES;
  /** Ends the search after the knob at hand. */
  readonly signal?: AbortSignal;
  /** Called after each knob with the configuration that the search has come to. */
  readonly onProgress?: (progress: TunedConstant) => void;
}

/** The best configuration so far, and what it earns. */
export interface TunedConstant {
  readonly action: ServeAction;
  /** Of an episode, over the traces. */
  readonly meanReturn: number;
  /** Episodes played so far. */
  readonly episodes: number;
}

/**
 * Looks for the configuration that earns most when it is kept for whole episodes of the training split. Configurations
 * drawn over all knobs are halved on more and more traces; from the best two and from the default, one knob at a time is set
 * to the value that earns most, until none changes any more. All are played on the same traces.
 */
export async function tuneConstant(options: TuneConstantOptions): Promise<TunedConstant> {
  const task = knownTask(llmserve, options.taskId);
  return search(task, new ConstantReturns(task, options), options);
}

/** `tuneConstant` for traffic that is all of one phase, with the configuration in force from the start. */
export async function tunePhase(
  phase: ServeTask['phases'][number],
  options: TuneConstantOptions,
): Promise<TunedConstant> {
  const task = knownTask(llmserve, options.taskId);
  const alone = {
    ...task,
    windows: PHASE_WINDOWS,
    phases: [{ ...phase, windows: [PHASE_WINDOWS, PHASE_WINDOWS] as const }],
  };
  return search(task, new ConstantReturns(alone, options, true), options);
}

async function search(
  task: ServeTask,
  returns: ConstantReturns,
  options: TuneConstantOptions,
): Promise<TunedConstant> {
  const starts = [task.defaultAction, ...promising(task, returns, options)];
  const knobs = llmserve.activeKnobs(task);
  let best: TunedConstant | undefined;
  for (const start of starts) {
    if (best !== undefined && options.signal?.aborted) break;
    const end = await climb(start, knobs, returns, options);
    if (best === undefined || end.meanReturn > best.meanReturn) best = end;
  }
  return { ...best!, episodes: returns.episodes };
}

/** The best of configurations drawn over all active knobs, by successive halving. */
function promising(
  task: ServeTask,
  returns: ConstantReturns,
  { seed, traces = TRACES }: TuneConstantOptions,
): ServeAction[] {
  const draws = new RandomStream(seed, 'constants');
  let left = distinctActions(Array.from({ length: DRAWN }, () => holdMaskedKnobs(task, drawnAction(draws))));
  for (const [round, count] of LEFT.entries()) {
    const played = Math.min(traces.many, 2 * 4 ** round);
    left = left.sort((a, b) => returns.mean(b, played) - returns.mean(a, played)).slice(0, count);
  }
  return left;
}

function drawnAction(draws: RandomStream): ServeAction {
  const drawn = llmserve.knobs.map((knob) => [
    knob,
    KNOB_GRID[knob][draws.integer(0, KNOB_GRID[knob].length - 1)],
  ]);
  return Object.fromEntries(drawn) as ServeAction;
}

async function climb(
  start: ServeAction,
  knobs: readonly ServeKnob[],
  returns: ConstantReturns,
  { traces = TRACES, signal, onProgress }: TuneConstantOptions,
): Promise<TunedConstant> {
  let action = start;
  let reached: TunedConstant;
  let settled = 0;
  let turn = 0;
  do {
    const better = tuneKnob(returns, action, knobs[turn], traces);
    settled = actionKey(better) === actionKey(action) ? settled + 1 : 1;
    action = better;
    turn = (turn + 1) % knobs.length;
    reached = { action, meanReturn: returns.mean(action, traces.many), episodes: returns.episodes };
    onProgress?.(reached);
    // Let progress be shown and signals be heard.
    await new Promise((resolve) => setImmediate(resolve));
  } while (settled < knobs.length && !signal?.aborted);
  return reached;
}

/** The action with one knob at its best value and the others as they are. */
function tuneKnob(
  returns: ConstantReturns,
  action: ServeAction,
  knob: ServeKnob,
  { few, many }: typeof TRACES,
): ServeAction {
  const byMeanOver = (traces: number) => (a: ServeAction, b: ServeAction) =>
    returns.mean(b, traces) - returns.mean(a, traces);
  const finalists = KNOB_GRID[knob]
    .map((value) => withKnob(action, knob, value))
    .sort(byMeanOver(few))
    .slice(0, FINALISTS);
  return [action, ...finalists].sort(byMeanOver(many))[0];
}

/** Returns of constant configurations, each played once on each trace. */
class ConstantReturns {
  episodes = 0;
  readonly #task: ServeTask;
  /** The configuration is in force from the start, in place of the task's default. */
  readonly #fromTheStart: boolean;
  readonly #traces: readonly { readonly seed: number; readonly requests: EpisodeRequests }[];
  readonly #known = new Map<string, number[]>();

  constructor(
    task: ServeTask,
    { seed, traces = TRACES }: Pick<TuneConstantOptions, 'seed' | 'traces'>,
    fromTheStart = false,
  ) {
    this.#task = task;
    this.#fromTheStart = fromTheStart;
    this.#traces = trainingTraces(seed, traces.many).map((trace) => ({
      ...{ seed: trace, requests: llmserve.drawRequests(task, trace) },
    }));
  }

  /** Mean over the first `count` traces. */
  mean(action: ServeAction, count: number): number {
    const key = actionKey(action);
    const known = this.#known.get(key) ?? [];
    this.#known.set(key, known);
    while (known.length < count) known.push(this.#play(action, known.length));
    let sum = 0;
    for (let trace = 0; trace < count; trace++) sum += known[trace];
    return sum / count;
  }

  #play(action: ServeAction, trace: number): number {
    const { seed, requests } = this.#traces[trace];
    const task = this.#fromTheStart ? { ...this.#task, defaultAction: action } : this.#task;
    const episode = new ServeEpisode(task, seed, { requests });
    while (!episode.done) episode.step(action);
    this.episodes++;
    return episode.totals.reward;
  }
}
