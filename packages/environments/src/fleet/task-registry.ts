import { Tasks } from '../tasks.ts';
import type { FleetTaskId } from './schema.ts';
import { agents } from './tasks/agents.ts';
import { diurnal } from './tasks/diurnal.ts';
import { flashCrowds } from './tasks/flash-crowds.ts';
import type { FleetTask } from './tasks/fleet-task.ts';
import { parseFleetTask } from './tasks/fleet-task-schema.ts';

/** The tasks by id, easiest first. */
export const FLEET_TASKS: Readonly<Record<FleetTaskId, FleetTask>> = {
  diurnal,
  flash_crowds: flashCrowds,
  agents,
};

/** These, and those of people who play their own. */
export const fleetTasks = new Tasks<FleetTask, FleetTaskId>(FLEET_TASKS, {
  parse: parseFleetTask,
  mark: 'streams',
});
