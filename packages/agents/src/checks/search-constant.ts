import { generateWorkload, type ServeAction, ServeEpisode, type ServeTask } from '@servegym/environments';
import { KNOBS, withKnob } from './knob-values.ts';

export interface FoundConstant {
  readonly action: ServeAction;
  /** Mean over the seeds. */
  readonly return: number;
}

/**
 * A short search of the configuration that earns most when it never changes: one knob at a time, from the default and
 * from the better of a server set for throughput and `ideas`, for so many rounds over all knobs or until none changes.
 */
export function searchConstant(
  task: ServeTask,
  seeds: readonly number[],
  rounds: number,
  ideas: readonly ServeAction[] = [],
): FoundConstant {
  const workloads = seeds.map((seed) => ({ seed, workload: generateWorkload(task, seed) }));
  const known = new Map<string, number>();
  const returnOf = (action: ServeAction) => {
    const key = JSON.stringify(action);
    const before = known.get(key);
    if (before !== undefined) return before;
    let sum = 0;
    for (const { seed, workload } of workloads) {
      const episode = new ServeEpisode(task, seed, { workload });
      while (!episode.done) episode.step(action);
      sum += episode.totals.reward;
    }
    known.set(key, sum / seeds.length);
    return sum / seeds.length;
  };
  const throughput: ServeAction = { ...task.defaultAction, batch_cap: 256, quantization_tier: 'INT8' };
  const idea = [throughput, ...ideas].reduce((best, each) => (returnOf(each) > returnOf(best) ? each : best));
  const ends = [task.defaultAction, idea].map((start) => {
    let action = start;
    for (let round = 0; round < rounds; round++) {
      const before = action;
      for (const { knob, bins } of KNOBS) {
        for (const value of bins.flatMap(({ values }) => values)) {
          const candidate = withKnob(action, knob, value);
          if (returnOf(candidate) > returnOf(action)) action = candidate;
        }
      }
      if (action === before) break;
    }
    return { action, return: returnOf(action) };
  });
  return ends.reduce((best, end) => (end.return > best.return ? end : best));
}
