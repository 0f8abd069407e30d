import {
  type EpisodeRequests,
  type ServeAction,
  ServeEpisode,
  type ServeKnob,
  type ServeTask,
} from '@servegym/environments';
import type { CheckResult } from '../../core/checks/check-result.ts';
import { KnobTally } from '../../core/checks/knob-tally.ts';
import { withKnob } from '../planning/knob-grid.ts';
import { serveKnobs } from './knob-values.ts';

/** A value is held for this many windows, then the good policy goes on for as many as `TAIL`. */
const HOLD = 8;
const TAIL = 4;
/** Knobs that must be live decisions; all that are free where fewer are. */
const LEAST_LIVE = { easy: 0, medium: 2, hard: 3 } as const;

/** An episode of a good policy. */
export interface GoodEpisode {
  readonly seed: number;
  readonly requests: EpisodeRequests;
  readonly actions: readonly ServeAction[];
}

/**
 * For states that a good policy visits: which value of each knob, held for eight windows with the other knobs as the
 * policy has them, earns most over twelve. A knob is dominated when one value, or one third of its range, wins
 * everywhere: nothing is to be decided about it.
 */
export function checkKnobDominance(
  task: ServeTask,
  episodes: readonly GoodEpisode[],
  states: number,
): CheckResult {
  const knobs = serveKnobs(task);
  const tally = new KnobTally(knobs);
  const perEpisode = Math.max(1, Math.round(states / episodes.length));
  const last = task.windows - HOLD - TAIL;
  for (const { seed, requests, actions } of episodes) {
    const episode = new ServeEpisode(task, seed, { requests });
    for (let i = 0; i < perEpisode; i++) {
      const at = Math.max(0, Math.round((last * (i + 0.5)) / perEpisode));
      while (episode.window < at) episode.step(actions[episode.window]);
      const state = episode.snapshot();
      tally.add((knob, value) => worth(episode, state, actions, knob, value));
      episode.restore(state);
    }
  }
  const least = Math.min(LEAST_LIVE[task.difficulty], knobs.length);
  return tally.result(least, task.difficulty, {
    outcome: 'fail',
    advice:
      'Let phases want opposite things: quality and tight token times when it is calm, capacity in a crowd, memory that tenants want back.',
  });
}

function worth(
  episode: ServeEpisode,
  state: ReturnType<ServeEpisode['snapshot']>,
  actions: readonly ServeAction[],
  knob: ServeKnob,
  value: ServeAction[ServeKnob],
): number {
  episode.restore(state);
  const start = episode.window;
  const before = episode.totals.reward;
  while (!episode.done && episode.window < start + HOLD + TAIL) {
    const planned = actions[episode.window];
    episode.step(episode.window < start + HOLD ? withKnob(planned, knob, value) : planned);
  }
  return episode.totals.reward - before;
}
