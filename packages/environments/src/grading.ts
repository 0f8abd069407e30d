import {
  EnvironmentError,
  type EpisodeRecord,
  type Grade,
  type ResetOptions,
} from '@servegym/openenv/definition';
import { regretScore } from './regret-score.ts';
import { readSeed } from './scenario.ts';
import type { WindowEpisode, WindowTask } from './window-environment.ts';
import { requireMaskedKnobsHeld } from './window-environment.ts';

/** Anchors that all environments with windows have. */
interface WindowAnchors {
  readonly default: number;
  readonly clairvoyant: number;
  readonly bound: number;
  readonly estimated: boolean;
}

/** What an environment with windows is graded by. */
interface GradedParts<Action extends object, Task extends WindowTask<Action>, Requests, Episode, Anchors> {
  choose(reset: ResetOptions): Task;
  drawRequests(task: Task, seed: number): Requests;
  start(task: Task, seed: number, requests: Requests): Episode;
  /** The least reward that a window can have: that of one that was not played. */
  unplayedReward(episode: Episode): number;
  anchors(task: Task, seed: number, requests: Requests): Anchors;
  /** The anchor at 0.50; `null` where none is known. */
  tuned(anchors: Anchors): number | null;
  /** Anchors whose scores are shown. */
  readonly shown: readonly (keyof Anchors & string)[];
  /** Room to adapt of a task, 0..1. */
  room(taskId: string): number;
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
}

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
  const total = episode.totals.reward + unplayed * parts.unplayedReward(episode);

  const anchors = parts.anchors(task, seed, requests);
  const { default: standard, clairvoyant, bound, estimated } = anchors;
  const tuned = parts.tuned(anchors);
  const room = parts.room(task.id);
  const scoreOf = (value: number) =>
    regretScore(value, { default: standard, constant: tuned, clairvoyant }, room);
  const shown = parts.shown.flatMap((name) => {
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
      ...parts.figures(episode),
    },
    feedback: feedback(),
  };

  function feedback(): string {
    const { words } = parts;
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
