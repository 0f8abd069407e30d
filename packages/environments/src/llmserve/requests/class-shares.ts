import { type Phase, REQUEST_CLASSES } from '../tasks/serve-task.ts';

/** Shares of the classes in a phase, in the order of `REQUEST_CLASSES`. */
export function classShares(traffic: Phase['traffic']): number[] {
  return REQUEST_CLASSES.map((name) => traffic[name]?.share ?? 0);
}
