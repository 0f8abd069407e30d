import {
  type GymAction,
  GymEpisode,
  type GymTask,
  type GymWorld,
  inferencegym,
} from '@servegym/environments';
import { climb, episodeReturn, turned, turnsOf } from '../core/checks/task-check.ts';
import { checkedGym } from './checked-tasks.ts';

/** Steps that a configuration is kept for at most, before the schedule may choose another. */
const LONGEST_STRETCH = 10;
/** Gains below this are none. */
const LEAST_GAIN = 1e-9;

/** The actions of an episode, and what they earn. */
export interface Schedule {
  readonly actions: readonly GymAction[];
  readonly return: number;
}

/**
 * A good schedule for traffic that is known in advance. Bursts and calm are cut into stretches of at most ten steps;
 * one knob at a time is set to the value that earns most over the whole episode, first in all bursts or all calm at
 * once and then in each stretch, until nothing is gained any more. Never worse than keeping `start`.
 */
export function planSchedule(
  world: GymWorld,
  task: GymTask,
  seed: number,
  { start, sweeps }: { readonly start: GymAction; readonly sweeps: number },
): Schedule {
  const checked = checkedGym(world, task);
  const stretches = stretchesOf(world, task, seed);
  const all = [...stretches.keys()];
  const parts = [true, false].map((isBurst) => all.filter((i) => stretches[i].isBurst === isBurst));
  const groups = [...parts, ...all.map((i) => [i])].filter((group) => group.length > 0);
  const stretchAt = stretches.flatMap(({ steps }, i) => Array<number>(steps).fill(i));
  const worth = (plan: readonly GymAction[]) => episodeReturn(checked, seed, (step) => plan[stretchAt[step]]);
  const turns = turnsOf(checked.knobs);
  const changes = groups.flatMap((group) =>
    turns.map(
      ({ knob, value }) =>
        (plan: readonly GymAction[]) =>
          plan.map((action, i) => (group.includes(i) ? turned(action, knob, value) : action)),
    ),
  );
  const kept: readonly GymAction[] = stretches.map(() => start);
  const { plan, return: most } = climb(kept, changes, worth, { sweeps, least: LEAST_GAIN });
  return { actions: stretchAt.map((i) => plan[i]), return: most };
}

interface Stretch {
  readonly isBurst: boolean;
  steps: number;
}

function stretchesOf(world: GymWorld, task: GymTask, seed: number): Stretch[] {
  const { workload } = new GymEpisode(task, seed, world);
  const stretches: Stretch[] = [];
  for (let step = 0; step < inferencegym.episodeSteps; step++) {
    const isBurst = workload.isBurst(step);
    const last = stretches.at(-1);
    if (last === undefined || last.isBurst !== isBurst || last.steps === LONGEST_STRETCH) {
      stretches.push({ isBurst, steps: 1 });
    } else {
      last.steps++;
    }
  }
  return stretches;
}
