import type { ServeAction } from '../schema.ts';
import type { ServeTask } from '../tasks/serve-task.ts';
import type { Workload } from '../workload/workload.ts';
import { constantReturn } from './constant-return.ts';
import { recordedReference, recordedReturns, type TaskReference } from './reference-returns.ts';
import { returnBound } from './return-bound.ts';

/** Returns that an episode is held against, all on the same traffic. */
export interface EpisodeAnchors {
  readonly default: number;
  /** Of the best constant configuration; `null` for a task for which none is known. */
  readonly constant: number | null;
  /** Of the receding-horizon planner; `null` where it was not played. */
  readonly planner: number | null;
  readonly clairvoyant: number;
  /** No policy can exceed it. */
  readonly bound: number;
  /** Whether `clairvoyant` is an estimate: nothing is recorded for this traffic. */
  readonly estimated: boolean;
}

/**
 * The recorded returns of (task, seed). Where there are none, the default and the best constant are played, and the
 * clairvoyant is taken to be as far above the better of them as it is on average over the recorded seeds of the task; for a
 * task without any, it is taken to reach the bound.
 */
export function episodeAnchors(task: ServeTask, seed: number, workload: Workload): EpisodeAnchors {
  const bound = returnBound(task, workload);
  const recorded = recordedReturns(task, seed);
  if (recorded !== undefined) return { planner: null, ...recorded, bound, estimated: false };
  const played = (action: ServeAction) => constantReturn(task, seed, workload, action);
  const standard = played(task.defaultAction);
  const reference = recordedReference(task.id);
  if (reference === undefined) {
    return {
      default: standard,
      constant: null,
      planner: null,
      clairvoyant: bound,
      bound,
      estimated: true,
    };
  }
  const constant = played(reference.constant);
  const reached = Math.max(standard, constant) + meanHeadroom(reference);
  return {
    default: standard,
    constant,
    planner: null,
    clairvoyant: Math.min(bound, reached),
    bound,
    estimated: true,
  };
}

/** How far the clairvoyant is above the better of default and constant, on average. */
function meanHeadroom({ seeds }: TaskReference): number {
  const returns = Object.values(seeds);
  const sum = returns.reduce(
    (total, { clairvoyant, constant, default: standard }) =>
      total + clairvoyant - Math.max(constant, standard),
    0,
  );
  return returns.length === 0 ? 0 : sum / returns.length;
}

/**
 * Room to adapt over the recorded seeds of a task: what the clairvoyant gains over the best constant, as a share of what it gains
 * over the default. 0 where nothing is recorded.
 */
export function roomToAdapt(taskId: string): number {
  const returns = Object.values(recordedReference(taskId)?.seeds ?? {});
  let overConstant = 0;
  let overDefault = 0;
  for (const { clairvoyant, constant, default: standard } of returns) {
    overConstant += clairvoyant - constant;
    overDefault += clairvoyant - standard;
  }
  return overDefault > 0 ? overConstant / overDefault : 0;
}
