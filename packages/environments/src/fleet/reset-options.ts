import type { ResetOptions } from '@servegym/openenv/definition';
import { z } from 'zod';
import { named, unknownName } from '../reset-values.ts';
import { FLEET_TASK_IDS, type FleetTaskId } from './schema.ts';
import { FLEET_TASKS } from './task-registry.ts';
import type { FleetTask } from './tasks/fleet-task.ts';

const EASIEST = 'diurnal';

/** Options of `reset` of `fleet` beside `seed` and `episode_id`. */
export function fleetResetOptions() {
  return z.object({
    task_id: z.enum(FLEET_TASK_IDS).default(EASIEST).meta({ description: 'The task to play' }),
  });
}

/** The task of `task_id`; `diurnal` when it is absent. @throws EnvironmentError `UNKNOWN_TASK` */
export function chooseFleetTask({ task_id = EASIEST }: ResetOptions): FleetTask {
  const id = named(task_id);
  if (Object.hasOwn(FLEET_TASKS, id)) return FLEET_TASKS[id as FleetTaskId];
  throw unknownName('task_id', task_id, FLEET_TASK_IDS, 'UNKNOWN_TASK');
}

/** Requests of an episode with these options, about; 0 for options that `chooseFleetTask` refuses. */
export function fleetEpisodeSize({ task_id = EASIEST }: ResetOptions): number {
  const id = named(task_id);
  return Object.hasOwn(FLEET_TASKS, id) ? expectedRequests(FLEET_TASKS[id as FleetTaskId]) : 0;
}

/** Requests that the streams of a task make in an episode at its busiest hour, without its surges. */
function expectedRequests({ streams, windows, windowSeconds }: FleetTask): number {
  let perSecond = 0;
  for (const { rate, turns } of streams) {
    const peak = (2 * rate.peakToTrough) / (rate.peakToTrough + 1);
    perSecond += rate.perSecond * peak * (turns?.mean ?? 1);
  }
  return perSecond * windows * windowSeconds;
}
