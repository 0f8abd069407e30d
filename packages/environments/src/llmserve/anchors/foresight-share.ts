import { drawRequests } from '../requests/episode-requests.ts';
import { SERVE_TASKS } from '../tasks/serve-tasks.ts';
import { recordedReference } from './reference-returns.ts';
import { returnBound } from './return-bound.ts';

/** Recorded seeds that are looked at: their traffic has to be drawn again for the bound. */
const SEEDS = 12;
const known = new Map<string, number>();

/**
 * How far the clairvoyant comes from the better of default and best constant towards the bound, as a share, over recorded
 * seeds of a task; 0 where nothing is recorded.
 */
export function foresightShare(taskId: string): number {
  let share = known.get(taskId);
  if (share === undefined) {
    share = measuredShare(taskId);
    known.set(taskId, share);
  }
  return share;
}

function measuredShare(taskId: string): number {
  const reference = recordedReference(taskId);
  if (reference === undefined || !Object.hasOwn(SERVE_TASKS, taskId)) return 0;
  const task = SERVE_TASKS[taskId as keyof typeof SERVE_TASKS];
  let gained = 0;
  let possible = 0;
  for (const [seed, returns] of Object.entries(reference.seeds).slice(0, SEEDS)) {
    const best = Math.max(returns.default, returns.constant);
    gained += returns.clairvoyant - best;
    possible += returnBound(task, drawRequests(task, Number(seed))) - best;
  }
  return possible > 0 ? gained / possible : 0;
}
