import { activeKnobs, SEED_SPLITS, type ServeAction, type ServeTask } from '@servegym/environments';
import { withKnob } from '../planning/knob-grid.ts';
import { serveKnobs } from './knob-values.ts';
import { meanOver, playTask } from './play-task.ts';

/**
 * The configuration with INT4 that earns most on training traffic when it is kept, of a short search: from `good`, each
 * other knob once to its best value. `undefined` where the task masks the precision.
 */
export function bestInt4Constant(
  task: ServeTask,
  good: ServeAction,
  traces: number,
): ServeAction | undefined {
  if (!activeKnobs(task).includes('quantization_tier')) return undefined;
  const seeds = Array.from({ length: traces }, (_, i) => SEED_SPLITS.train.first + i);
  const earned = (action: ServeAction) =>
    meanOver(seeds, (seed) => playTask(task, seed, () => action), 'return');
  let best = withKnob(good, 'quantization_tier', 'INT4');
  let most = earned(best);
  for (const { knob, bins } of serveKnobs(task)) {
    if (knob === 'quantization_tier') continue;
    for (const value of bins.flatMap(({ values }) => values)) {
      const tried = withKnob(best, knob, value);
      const reached = earned(tried);
      if (reached <= most) continue;
      most = reached;
      best = tried;
    }
  }
  return best;
}
