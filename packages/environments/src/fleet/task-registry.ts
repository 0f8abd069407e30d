import type { FleetTaskId } from './schema.ts';
import { agents } from './tasks/agents.ts';
import { diurnal } from './tasks/diurnal.ts';
import { flashCrowds } from './tasks/flash-crowds.ts';
import type { FleetTask } from './tasks/fleet-task.ts';

/** The tasks by id. */
export const FLEET_TASKS: Readonly<Record<FleetTaskId, FleetTask>> = {
  diurnal,
  flash_crowds: flashCrowds,
  agents,
};
