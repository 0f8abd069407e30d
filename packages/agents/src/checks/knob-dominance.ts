import { type ServeAction, ServeEpisode, type ServeTask, type Workload } from '@servegym/environments';
import { withKnob } from '../planning/knob-grid.ts';
import type { CheckResult } from './check-result.ts';
import { KNOBS, type Knob } from './knob-values.ts';

/** A value is held for this many windows, then the good policy goes on for as many as `TAIL`. */
const HOLD = 8;
const TAIL = 4;
/** Rewards closer than this are equal. */
const EQUAL = 1e-6;
/** A bin that is best in this share of the states dominates the others. */
const DOMINATES = 0.97;

/** Knobs that must be live decisions. */
const LEAST_LIVE = { easy: 0, medium: 2, hard: 3 } as const;

/** An episode of a good policy. */
export interface GoodEpisode {
  readonly seed: number;
  readonly workload: Workload;
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
  const wins = new Map<Knob, Map<string, number>>(
    KNOBS.map(({ knob, bins }) => [knob, new Map(bins.map(({ name }) => [name, 0]))]),
  );
  const acting = new Map<Knob, number>(KNOBS.map(({ knob }) => [knob, 0]));
  const perEpisode = Math.max(1, Math.round(states / episodes.length));
  const last = task.windows - HOLD - TAIL;
  for (const { seed, workload, actions } of episodes) {
    const episode = new ServeEpisode(task, seed, { workload });
    for (let i = 0; i < perEpisode; i++) {
      const at = Math.max(0, Math.round((last * (i + 0.5)) / perEpisode));
      while (episode.window < at) episode.step(actions[episode.window]!);
      const state = episode.snapshot();
      for (const { knob, bins } of KNOBS) {
        const best = bins.map(({ values }) =>
          Math.max(...values.map((value) => worth(episode, state, actions, knob, value))),
        );
        const most = Math.max(...best);
        if (most - Math.min(...best) < EQUAL) continue;
        acting.set(knob, acting.get(knob)! + 1);
        for (const [b, { name }] of bins.entries()) {
          if (best[b]! >= most - EQUAL) wins.get(knob)!.set(name, wins.get(knob)!.get(name)! + 1);
        }
      }
      episode.restore(state);
    }
  }
  const dominated = KNOBS.filter(({ knob }) => {
    const most = Math.max(...wins.get(knob)!.values());
    return acting.get(knob)! > 0 && most >= DOMINATES * acting.get(knob)!;
  }).map(({ knob }) => knob);
  const live = KNOBS.filter(({ knob }) => acting.get(knob)! > 0).length - dominated.length;
  const least = LEAST_LIVE[task.difficulty];
  const isGame = live >= least;
  return {
    id: 'knob_dominance',
    group: 'game',
    title: `of at least ${least} knobs no one value is always best, as ${task.difficulty} tasks ask for`,
    outcome: isGame ? 'pass' : 'fail',
    figures: {
      states: episodes.length * perEpisode,
      live_knobs: live,
      dominated: dominated.join(', ') || 'none',
      ...Object.fromEntries(KNOBS.map(({ knob }) => [knob, shares(wins.get(knob)!, acting.get(knob)!)])),
    },
    ...(!isGame && {
      advice:
        'Let phases want opposite things: quality and tight token times when it is calm, capacity in a crowd, memory that tenants want back.',
    }),
  };
}

function worth(
  episode: ServeEpisode,
  state: ReturnType<ServeEpisode['snapshot']>,
  actions: readonly ServeAction[],
  knob: Knob,
  value: ServeAction[Knob],
): number {
  episode.restore(state);
  const start = episode.window;
  const before = episode.totals.reward;
  while (!episode.done && episode.window < start + HOLD + TAIL) {
    const planned = actions[episode.window]!;
    episode.step(episode.window < start + HOLD ? withKnob(planned, knob, value) : planned);
  }
  return episode.totals.reward - before;
}

/** In how many of the states each bin is best. */
function shares(wins: ReadonlyMap<string, number>, states: number): string {
  if (states === 0) return 'does nothing';
  return [...wins].map(([name, count]) => `${name} ${Math.round((100 * count) / states)} %`).join(', ');
}
