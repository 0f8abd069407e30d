/** Recorded returns on the traffic of one seed. */
export interface RecordedReturns {
  readonly default: number;
  /** Of the best constant configuration, or for `fleet` of the tuned rule. */
  readonly tuned: number;
  readonly clairvoyant: number;
}

/**
 * Room of a task: what the clairvoyant gains over the tuned policy, as a share of what it gains over the default.
 * `unrecorded` where there is nothing to tell it by.
 */
export function recordedRoom(seeds: readonly RecordedReturns[], unrecorded: number): number {
  let overTuned = 0;
  let overDefault = 0;
  for (const { clairvoyant, tuned, default: standard } of seeds) {
    overTuned += clairvoyant - tuned;
    overDefault += clairvoyant - standard;
  }
  return overDefault > 0 ? overTuned / overDefault : unrecorded;
}

/** A recorded seed, whose traffic has to be drawn again for the bound. */
export interface BoundedReturns {
  readonly returns: RecordedReturns;
  readonly bound: () => number;
}

/**
 * Function from a task's id to the share of the way from the better of default and tuned policy to the bound that the
 * clairvoyant covers over the task's seeds; `unrecorded` where there are none. Each task is measured once.
 */
export function foresightShares(
  seedsOf: (taskId: string) => readonly BoundedReturns[],
  unrecorded: number,
): (taskId: string) => number {
  const known = new Map<string, number>();
  return (taskId) => {
    let share = known.get(taskId);
    if (share === undefined) {
      share = measuredShare(seedsOf(taskId)) ?? unrecorded;
      known.set(taskId, share);
    }
    return share;
  };
}

function measuredShare(seeds: readonly BoundedReturns[]): number | undefined {
  let gained = 0;
  let possible = 0;
  for (const { returns, bound } of seeds) {
    const best = Math.max(returns.default, returns.tuned);
    gained += returns.clairvoyant - best;
    possible += bound() - best;
  }
  return possible > 0 ? gained / possible : undefined;
}
