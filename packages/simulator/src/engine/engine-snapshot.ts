import type { EngineState } from './engine-state.ts';

const LISTS = ['running', 'future', 'waiting'] as const;
const BUFFERS = ['ended', 'skipped', 'aborted'] as const;

/** A copy of the state, but for its logs. */
export function takeSnapshot(state: EngineState) {
  // What is drawn ahead can be drawn again, and decodes be enlisted again: the table is all there is to copy.
  state.verifications.deactivate();
  const { now, lastStart, lastArrival, partials, stalled, sinceReceived } = state;
  const { admitting, received, admissions, role } = state;
  return {
    plain: {
      ...{ now, lastStart, lastArrival, partials, stalled, sinceReceived },
      ...{ admitting, received, admissions, role },
    },
    table: state.table.snapshot(),
    lists: LISTS.map((name) => state[name].ends()),
    decodeClock: state.decodes.clock,
    inLockstep: state.decodes.active,
    config: state.config,
    pool: state.pool.snapshot(),
    handovers: state.handovers.slice(),
    buffers: BUFFERS.map((name) => state[name].toArray()),
    /** Requests by slot, where a policy orders the queue. */
    views: state.views.slice(),
    /** `null` without a front end. */
    frontEnd: state.frontEnd?.snapshot() ?? null,
  };
}

/** All of an engine that decides its future. */
export type EngineSnapshot = Readonly<ReturnType<typeof takeSnapshot>>;

/** Puts the state back to where the snapshot was taken. Its logs stay as they are. */
export function restoreSnapshot(state: EngineState, snapshot: EngineSnapshot): void {
  state.verifications.deactivate();
  Object.assign(state, snapshot.plain);
  // A change of the policy puts the queue in order, where the snapshot has its own.
  state.adopt(snapshot.config);
  state.table.restore(snapshot.table);
  for (const [i, name] of LISTS.entries()) state[name].setEnds(snapshot.lists[i]);
  state.decodes.restore(snapshot.decodeClock, snapshot.inLockstep, state.running.head);
  state.pool.restore(snapshot.pool);
  state.settleDecodes();
  state.handovers = snapshot.handovers.slice();
  for (const [i, name] of BUFFERS.entries()) state[name].set(snapshot.buffers[i]);
  state.views = snapshot.views.slice();
  if (snapshot.frontEnd !== null) state.frontEnd?.restore(snapshot.frontEnd);
}
