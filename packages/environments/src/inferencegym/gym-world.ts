import { type Calibration, calibrateTask, type TaskCalibration } from './calibrate-task.ts';
import { ServiceTimes } from './service-times.ts';
import shippedCalibration from './shipped-calibration.json' with { type: 'json' };
import { shippedTable } from './table/shipped-table.ts';
import type { TraceTable } from './table/trace-table.ts';
import type { GymTask } from './tasks/gym-task.ts';
import { GYM_TASKS } from './tasks/gym-tasks.ts';

/** A trace table with what follows from it. Shared by all episodes on the table. */
export class GymWorld {
  readonly times: ServiceTimes;
  private readonly calibrations: Partial<Calibration>;

  /** @param calibration of the tasks; what is not there is measured when it is first asked for, in up to two seconds */
  constructor(table: TraceTable, calibration: Partial<Calibration> = {}) {
    this.times = new ServiceTimes(table);
    this.calibrations = { ...calibration };
  }

  /** What scores of a task are held against on this table; measured once, which takes a moment. */
  calibration(task: GymTask): TaskCalibration {
    const known = this.calibrations[task.id];
    if (known !== undefined) return known;
    const measured = calibrateTask(this.times, task);
    this.calibrations[task.id] = measured;
    return measured;
  }

  /** Measures all that is not known yet, so that no episode has to wait for it. */
  prepare(): void {
    for (const task of Object.values(GYM_TASKS)) this.calibration(task);
  }
}

let shipped: Promise<GymWorld> | undefined;

/** The world of the table that comes with the package. Its calibration is written by `servegym table calibrate`. */
export function shippedWorld(): Promise<GymWorld> {
  shipped ??= shippedTable().then((table) => new GymWorld(table, shippedCalibration as Calibration));
  return shipped;
}
