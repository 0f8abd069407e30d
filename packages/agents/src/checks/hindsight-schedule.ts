import { type ServeAction, ServeEpisode, type ServeTask, type Workload } from '@servegym/environments';
import { KNOBS, withKnob } from './knob-values.ts';

/** A stretch between two changes is at most this long, windows. */
const LONGEST_STRETCH = 12;
/** What a stretch leaves behind is judged over this many windows more. */
const LOOK_BEYOND = 16;

/** A sequence of configurations for known traffic, and what it earns. */
export interface HindsightSchedule {
  /** One for each window. */
  readonly actions: readonly ServeAction[];
  readonly return: number;
}

/**
 * Improves on a constant configuration, knowing the traffic: stretch by stretch, at phase changes and at least every 12
 * windows, it takes the value of a knob, or the configuration of `ideas`, that earns most over the stretch and the next
 * 16 windows, with all that the change costs. Never below the constant; at best as good as the best policy could be.
 */
export function hindsightSchedule(
  task: ServeTask,
  seed: number,
  workload: Workload,
  constant: ServeAction,
  ideas: readonly ServeAction[],
): HindsightSchedule {
  const actions: ServeAction[] = Array.from({ length: task.windows }, () => constant);
  const episode = new ServeEpisode(task, seed, { workload });
  for (const [start, end] of stretchesOf(task, workload)) {
    const state = episode.snapshot();
    const horizon = Math.min(task.windows, end + LOOK_BEYOND);
    const worth = (candidate: ServeAction) => {
      episode.restore(state);
      // Whoever changes now may keep it, or go back to the constant.
      while (episode.window < end) episode.step(candidate);
      const changed = episode.snapshot();
      while (episode.window < horizon) episode.step(candidate);
      const kept = episode.totals.reward;
      episode.restore(changed);
      while (episode.window < horizon) episode.step(constant);
      return Math.max(kept, episode.totals.reward);
    };
    let best = constant;
    let most = worth(constant);
    const consider = (candidate: ServeAction) => {
      const value = worth(candidate);
      if (value <= most + 1e-9) return;
      best = candidate;
      most = value;
    };
    if (start > 0) consider(actions[start - 1]!);
    for (const idea of ideas) consider(idea);
    for (const { knob, bins } of KNOBS) {
      const from = best;
      for (const { values } of bins) {
        for (const value of values.filter((_, i) => i % 2 === 0)) consider(withKnob(from, knob, value));
      }
    }
    actions.fill(best, start, end);
    episode.restore(state);
    while (episode.window < end) episode.step(best);
  }
  const kept = new ServeEpisode(task, seed, { workload });
  while (!kept.done) kept.step(constant);
  if (kept.totals.reward > episode.totals.reward) {
    return { actions: actions.fill(constant), return: kept.totals.reward };
  }
  return { actions, return: episode.totals.reward };
}

/** First window and the one after the last. */
function stretchesOf({ windows }: ServeTask, { phases }: Workload): [number, number][] {
  const stretches: [number, number][] = [];
  let start = 0;
  for (let w = 1; w <= windows; w++) {
    if (w < windows && phases[w] === phases[start] && w - start < LONGEST_STRETCH) continue;
    stretches.push([start, w]);
    start = w;
  }
  return stretches;
}
