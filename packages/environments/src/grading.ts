import { createHash, type Hash } from 'node:crypto';
import {
  EnvironmentError,
  type EpisodeRecord,
  type Grade,
  type ResetOptions,
} from '@servegym/openenv/definition';
import { portableMath } from '@servegym/simulator';
import type { Extras, RegisteredEnvironment } from './registry.ts';
import { readSeed } from './scenario.ts';
import {
  requireMaskedKnobsHeld,
  type WindowEpisode,
  type WindowParts,
  type WindowTask,
} from './window-environment.ts';

/** Returns that all episodes with windows are held against, on the same requests. */
export interface WindowAnchors {
  readonly default: number;
  readonly clairvoyant: number;
  /** No policy can exceed it. */
  readonly bound: number;
  /** True when `clairvoyant` is an estimate, because nothing is recorded for these requests. */
  readonly estimated: boolean;
}

/** Parts of an environment with windows that its grades are made of. */
interface GradedParts<Action extends object, Task extends WindowTask<Action>, Requests, Episode, Anchors> {
  choose(reset: ResetOptions): Task;
  drawRequests(task: Task, seed: number): Requests;
  start(task: Task, seed: number, requests: Requests): Episode;
  readonly anchors: Extras & {
    of(task: Task, seed: number, requests: Requests): Anchors;
    /** Room to adapt of a task, 0..1. */
    room(taskId: string): number;
  };
  readonly grading: {
    /** The least reward that a window can have: that of one that was not played. */
    unplayedReward(episode: Episode): number;
    /** The anchor at 0.50; `null` where none is known. */
    tuned(anchors: Anchors): number | null;
    /** Anchors whose scores are shown. */
    readonly shown: readonly (keyof Anchors & string)[];
    /** Further figures of the breakdown. */
    figures(episode: Episode): object;
    readonly words: {
      readonly default: string;
      readonly tuned: string;
      /** The requests of the episode, and the same as what a planner knows. */
      readonly requests: string;
      readonly known: string;
      /** What a window that was not played counts as. */
      readonly unplayed: string;
      /** A difference of returns. */
      amount(task: Task, difference: number): string;
    };
  };
}

/** The entry of an environment with windows in the registry. */
export type WindowEntry<
  Action extends object,
  Observation extends object,
  State extends object,
  Task extends WindowTask<Action>,
  Requests,
  Episode extends WindowEpisode<Action, Observation>,
  Anchors,
> = RegisteredEnvironment<Action, Observation, State, Task> &
  WindowParts<Action, Observation, State, Task, Episode> &
  GradedParts<Action, Task, Requests, Episode, Anchors> &
  Extras;

/**
 * Grades an episode by replaying its actions on the requests of its task and seed and holding its return against those of
 * the default, the best tuned policy and a planner that knows the requests; see `regretScore`. A window that was not played
 * counts as the least there is.
 * @throws EnvironmentError `EPISODE_TOO_LONG` when there are more actions than windows, `MASKED_KNOB` when one of them
 *   turns a knob that the task masks
 */
export function gradeWindows<
  Action extends object,
  Task extends WindowTask<Action>,
  Requests,
  Episode extends WindowEpisode<Action, unknown> & { readonly totals: { readonly reward: number } },
  Anchors extends WindowAnchors,
>(
  { reset, actions }: EpisodeRecord<Action>,
  parts: GradedParts<Action, Task, Requests, Episode, Anchors>,
): Grade {
  const { grading } = parts;
  const task = parts.choose(reset);
  const seed = readSeed(reset);
  if (actions.length > task.windows) {
    throw new EnvironmentError(
      'EPISODE_TOO_LONG',
      `Expected at most ${task.windows} actions for \`${task.id}\`, got ${actions.length}`,
    );
  }
  const held = actions.map((action) => requireMaskedKnobsHeld(task, action));
  const requests = parts.drawRequests(task, seed);
  const episode = parts.start(task, seed, requests);
  for (const action of held) episode.step(action);
  const unplayed = task.windows - actions.length;
  const total = episode.totals.reward + unplayed * grading.unplayedReward(episode);

  const anchors = parts.anchors.of(task, seed, requests);
  const { default: standard, clairvoyant, bound, estimated } = anchors;
  const tuned = grading.tuned(anchors);
  const room = parts.anchors.room(task.id);
  const scoreOf = (value: number) =>
    regretScore(value, { default: standard, constant: tuned, clairvoyant }, room);
  const shown = grading.shown.flatMap((name) => {
    const value = anchors[name] as number | null;
    return value === null ? [] : [[name, scoreOf(value)]];
  });
  return {
    score: scoreOf(total),
    ...(estimated && { estimated: true }),
    breakdown: {
      return: total,
      anchors,
      anchor_scores: Object.fromEntries(shown),
      regret: clairvoyant - total,
      certificate: { bound, gap: bound - clairvoyant },
      windows_played: actions.length,
      windows: task.windows,
      ...grading.figures(episode),
    },
    feedback: feedback(),
  };

  function feedback(): string {
    const { words } = grading;
    if (unplayed > 0) {
      return `${unplayed} of ${task.windows} windows were not played and count ${words.unplayed}. Play to the end.`;
    }
    const gain = total - standard;
    const than = `${words.default} on ${words.requests}`;
    if (gain === 0) return `As good as ${than}.`;
    if (gain < 0) return `Worse than ${than}, by ${words.amount(task, -gain)}.`;
    const share = `${((gain / (clairvoyant - standard)) * 100).toFixed(0)} %`;
    const better = `Better than ${than}, by ${words.amount(task, gain)}: ${share} of what a planner gains that knows ${words.known}.`;
    if (tuned === null || tuned <= standard) return better;
    return `${better} ${total > tuned ? 'More' : 'Not more'} than ${words.tuned}.`;
  }
}

const DEFAULT_SCORE = 0.2;
const CONSTANT_SCORE = 0.5;
const CLAIRVOYANT_SCORE = 0.95;

/** Returns on the same traffic at which the scores are fixed. */
export interface ScoreAnchors {
  /** 0.20 */
  readonly default: number;
  /** 0.50: the best constant configuration, or for `fleet` the best tuned rule; `null` where none is known. */
  readonly constant: number | null;
  /** 0.95 */
  readonly clairvoyant: number;
}

/** Room to adapt of a task below which the constant has no score of its own: its segment would be noise. */
const LEAST_ROOM = 0.05;
/** Least share of the way from default to clairvoyant that either side of the constant must be. */
const LEAST_SEGMENT = 0.02;

/**
 * Score of a return among its anchors: the default scores 0.20, the best constant 0.50, the clairvoyant 0.95, linear
 * between, rising smoothly towards 1 above. Below the default it falls as slowly as 0.20 / (1 + gaps), a gap being the
 * distance from default to clairvoyant: 0.10 one gap below, 0.018 ten gaps below, so that a first attempt still sees a
 * slope. Strictly inside (0, 1) and increasing.
 * The constant is left out where the task leaves no room to adapt, and on traffic where it does no better than the default
 * or no worse than the clairvoyant.
 * @param room room to adapt of the task, 0..1
 */
export function regretScore(total: number, anchors: ScoreAnchors, room: number): number {
  const { default: low, constant: middle, clairvoyant } = anchors;
  const high = Math.max(clairvoyant, low + 1e-6);
  const apart = LEAST_SEGMENT * (high - low);
  const kept = middle !== null && room >= LEAST_ROOM && middle - low >= apart && high - middle >= apart;
  const knots: [number, number][] = [
    [low, DEFAULT_SCORE],
    ...(kept ? [[middle, CONSTANT_SCORE] satisfies [number, number]] : []),
    [high, CLAIRVOYANT_SCORE],
  ];
  if (total < low) return inside(DEFAULT_SCORE / (1 + (low - total) / (high - low)));
  const slopes = knots.slice(1).map(([x, y], i) => (y - knots[i][1]) / (x - knots[i][0]));
  for (let i = 1; i < knots.length; i++) {
    if (total > knots[i][0]) continue;
    // Rounding must not lift the end of a segment above the beginning of the next.
    return Math.min(knots[i][1], knots[i - 1][1] + slopes[i - 1] * (total - knots[i - 1][0]));
  }
  const rest = 1 - CLAIRVOYANT_SCORE;
  return inside(1 - rest * portableMath.exp((-slopes[slopes.length - 1] / rest) * (total - high)));
}

/** Far outside, rounding reaches the limits that the score never does. */
function inside(score: number): number {
  return Math.min(1 - Number.EPSILON, Math.max(Number.MIN_VALUE, score));
}

/** Returns on the requests of one seed: of the default policy, and of a planner that knows the requests. */
type SeedReturns = Pick<ScoreAnchors, 'default' | 'clairvoyant'>;

interface TaskRecord<Returns extends SeedReturns> {
  /** Under which these were computed; see `fingerprint`. */
  readonly fingerprint: string;
  readonly seeds: Readonly<Record<string, Returns>>;
}

interface RecordedParts<Task, Returns> {
  /** File of the records; `benchmarks/run.ts references` writes it. */
  readonly url: URL;
  readonly records: object;
  readonly shipped: Readonly<Record<string, Task>>;
  /** Puts all into a fingerprint that a return depends on: the task, its profile but for its `fit`, and how the simulator plays it. */
  readonly print: (hash: Hash, task: Task) => void;
  /** Return of the tuned policy: the best constant configuration, or for `fleet` the tuned rule. */
  readonly tuned: (returns: Returns) => number;
  /** A return that no policy can exceed on the requests of a seed. */
  readonly bound: (task: Task, seed: number) => number;
  /** Recorded seeds that are looked at for `foresight`: their requests have to be drawn again for the bound. */
  readonly boundedSeeds: number;
  /** Room and foresight of a task of which nothing is recorded. */
  readonly unrecorded: number;
}

/** The recorded returns of the tasks that come with an environment. */
export function recordedReturns<
  Task extends { readonly id: string },
  Returns extends SeedReturns,
  Kept extends TaskRecord<Returns>,
>({ url, records, shipped, print, tuned, bound, boundedSeeds, unrecorded }: RecordedParts<Task, Returns>) {
  const fingerprints = new WeakMap<Task, string>();
  const foresights = new Map<string, number>();

  /** Record of the task with this id, which may hold no longer; `undefined` for a task that does not come with ServeGym. */
  function reference(taskId: string): Kept | undefined {
    const kept = records as Readonly<Record<string, Kept>>;
    return Object.hasOwn(kept, taskId) ? kept[taskId] : undefined;
  }

  /** True for a task that comes with ServeGym and was not changed for a shift or other requests. */
  function isRecorded(task: Task): boolean {
    return Object.hasOwn(shipped, task.id) && shipped[task.id] === task;
  }

  /** Returns of this very task on the requests of `seed`; `undefined` when none are recorded, or they no longer hold. */
  function returns(task: Task, seed: number): Returns | undefined {
    const kept = reference(task.id);
    if (kept === undefined || !isRecorded(task)) return undefined;
    const ofSeed = Object.hasOwn(kept.seeds, seed) ? kept.seeds[seed] : undefined;
    return ofSeed !== undefined && kept.fingerprint === fingerprint(task) ? ofSeed : undefined;
  }

  /**
   * Stands for all that a return depends on, to the last bit. Returns that were computed under another fingerprint are not
   * comparable.
   */
  function fingerprint(task: Task): string {
    const known = fingerprints.get(task);
    if (known !== undefined) return known;
    const hash = createHash('sha256');
    print(hash, task);
    const made = hash.digest('hex').slice(0, 16);
    fingerprints.set(task, made);
    return made;
  }

  /**
   * Room of a task over its recorded seeds: what the clairvoyant gains over the tuned policy, as a share of what it gains
   * over the default.
   */
  function room(taskId: string): number {
    let overTuned = 0;
    let overDefault = 0;
    for (const ofSeed of Object.values(reference(taskId)?.seeds ?? {})) {
      overTuned += ofSeed.clairvoyant - tuned(ofSeed);
      overDefault += ofSeed.clairvoyant - ofSeed.default;
    }
    return overDefault > 0 ? overTuned / overDefault : unrecorded;
  }

  /**
   * Share of the way from the better of default and tuned policy to the bound that the clairvoyant covers over the first
   * recorded seeds of a task. Each task is measured once.
   */
  function foresight(taskId: string): number {
    const known = foresights.get(taskId);
    if (known !== undefined) return known;
    let gained = 0;
    let possible = 0;
    const recorded = Object.hasOwn(shipped, taskId) ? reference(taskId)?.seeds : undefined;
    const seeds = Object.entries(recorded ?? {}).slice(0, boundedSeeds);
    for (const [seed, ofSeed] of seeds) {
      const best = Math.max(ofSeed.default, tuned(ofSeed));
      gained += ofSeed.clairvoyant - best;
      possible += bound(shipped[taskId], Number(seed)) - best;
    }
    const measured = possible > 0 ? gained / possible : unrecorded;
    foresights.set(taskId, measured);
    return measured;
  }

  return { url, reference, isRecorded, returns, fingerprint, room, foresight };
}

/** Seed of the episode that is played for a fingerprint. */
export const FINGERPRINT_SEED = 0;

/** Plays windows of an episode for a fingerprint; `changes` are those of the default settings, window by window. */
export function printPlay<Action extends object, Observation extends { readonly server: unknown }>(
  hash: Hash,
  episode: WindowEpisode<Action, Observation>,
  changes: readonly Partial<Action>[],
  windows = changes.length,
): void {
  const { defaultAction } = episode.task as WindowTask<Action>;
  for (let window = 0; window < windows; window++) {
    const reward = episode.step({ ...defaultAction, ...changes[window] });
    // The description of the server follows from the profile, and no return depends on it.
    const { server: _, ...seen } = episode.observation();
    hash.update(JSON.stringify([reward, seen]));
  }
}
