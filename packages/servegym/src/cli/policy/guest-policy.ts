import type { FleetView, PolicyFunctions, ReplicaView, RequestView } from '@servegym/simulator';
import { GUEST, type Guest, type Hook, withoutComments } from './guest.ts';

/** A policy that is played by a guest: in a realm of its own, or in Python. */
export interface GuestPolicy {
  readonly functions: PolicyFunctions<unknown>;
  /** Processor time spent in the policy, ms. In JavaScript an estimate: every 16th call is timed. */
  spentMs(): number;
  calls(): number;
}

/** Calls between two that are timed, a power of two. */
const TIMED = 16;
/** Stands for an object that a policy answered: nothing of its own is touched. */
const OBJECT = Object.freeze({});

/** Median ms between two looks at the clock. */
function clockCost(): number {
  const gaps = Array.from({ length: 201 }, () => -performance.now() + performance.now());
  return gaps.sort((a, b) => a - b)[100];
}

const fieldOf = (name: string): ((replica: ReplicaView) => number) =>
  name === 'role'
    ? ({ role }) => GUEST.ROLES.indexOf(role)
    : (replica) => replica[name as Exclude<keyof ReplicaView, 'role'>];

/** Writes what the next call shows into the memory of the guest: of a replica, the fields that the source names. */
function shower(guest: Guest, source: string, onFleet: (fleet: FleetView) => void) {
  const { requests, replicas, hashes } = guest;
  const code = withoutComments(source);
  const names = (name: string) => new RegExp(`\\b${name}\\b`).test(code);
  const fields = GUEST.REPLICA.map((name, offset) => ({ name, offset, of: fieldOf(name) }));
  const named = fields.filter(({ name }) => names(name));
  const usesHashes = names('prefix_hashes');
  const writeRequest = (request: RequestView, row: number) => {
    const at = row * GUEST.REQUEST.length;
    requests[at] = request.prompt_tokens;
    requests[at + 1] = request.priority;
    requests[at + 2] = request.arrival;
    requests[at + 3] = request.predicted_output_tokens ?? -1;
    requests[at + 4] = request.predicted_output_error ?? -1;
  };
  const show = (request: RequestView | null, fleet: FleetView) => {
    onFleet(fleet);
    if (request !== null) writeRequest(request, 0);
    const shown = fleet.replicas;
    for (let row = 0; row < shown.length; row++) {
      const at = row * GUEST.REPLICA.length;
      for (let field = 0; field < named.length; field++)
        replicas[at + named[field].offset] = named[field].of(shown[row]);
    }
    guest.fleet[0] = fleet.num_requests_held;
    guest.fleet[1] = fleet.queue_seconds;
    const hashed = usesHashes && request !== null ? request.prefix_hashes.slice(0, GUEST.HASHES) : [];
    hashes.set(hashed);
    guest.show(shown.length, hashed.length);
  };
  return { writeRequest, show };
}

/**
 * Functions of the host that ask those of the guest.
 * @param adopted what `guest.adopt` answered
 * @param onFleet told of the fleet that the next call shows
 * @throws Error with a sentence for the policy's author
 */
export function playGuest(
  guest: Guest,
  adopted: string,
  source: string,
  onFleet: (fleet: FleetView) => void = () => {},
): GuestPolicy {
  if (adopted.startsWith('!')) throw new Error(adopted.slice(1));
  const { list, kinds } = guest;
  const { writeRequest, show } = shower(guest, source, onFleet);
  const clockMs = clockCost();
  const samplesMs: number[] = [];
  let calls = 0;
  const timed = <T>(call: () => T): T => {
    if (calls++ % TIMED !== 0) return call();
    const begin = performance.now();
    const value = call();
    samplesMs.push(performance.now() - begin - clockMs);
    return value;
  };
  /** An answer as the simulator takes it. */
  const answered = (value: number, row = 0): unknown => {
    if (kinds[row] === GUEST.ANSWER.number) return value;
    if (kinds[row] === GUEST.ANSWER.boolean) return value === 1;
    if (kinds[row] === GUEST.ANSWER.thrown) throw new Error(guest.text());
    return guest.text() === 'undefined' ? undefined : OBJECT;
  };
  let shown: readonly ReplicaView[] = [];
  let scored: RequestView | null = null;
  let scoredAt = Number.NaN;
  const asked = (hook: 'admit' | 'disaggregate') => (request: RequestView, fleet: FleetView, now: number) => {
    show(request, fleet);
    return answered(timed(() => guest.ask(hook, now))) as never;
  };
  const all = {
    order(queue, now) {
      const rows = Math.min(GUEST.ROWS, queue.length);
      for (let row = 0; row < rows; row++) writeRequest(queue[row], row);
      const length = answered(timed(() => guest.order(rows, now)));
      if (typeof length !== 'number') return length as never;
      return Array.from(list.subarray(0, length), (row) => queue[row]);
    },
    admit: asked('admit'),
    disaggregate: asked('disaggregate'),
    score(request, replica, now, fleet) {
      // All replicas at once, as the next questions are for the others.
      if (request !== scored || now !== scoredAt) {
        show(request, fleet);
        shown = fleet.replicas;
        timed(() => guest.score(now));
        scored = request;
        scoredAt = now;
      }
      const row = shown.indexOf(replica);
      return answered(list[row], row) as never;
    },
    scale(metrics, fleet, now) {
      const json = timed(() => guest.scale(JSON.stringify([metrics, fleet]), now));
      const unusable = answered(0);
      return json === '' ? (unusable as never) : JSON.parse(json);
    },
  } satisfies PolicyFunctions<unknown>;
  const [hooks, ties] = adopted.split('/');
  const functions = Object.fromEntries(
    hooks.split(' ').flatMap((name) => (name === '' ? [] : [[name, all[name as Hook]]])),
  );
  return {
    functions: { ...functions, ties: ties as 'first' },
    spentMs() {
      if (guest.spentMs !== undefined) return guest.spentMs();
      // Without the largest hundredth: the system took the processor away in the middle of some.
      const kept = samplesMs.sort((a, b) => a - b).slice(0, Math.ceil(0.99 * samplesMs.length));
      return (kept.reduce((sum, each) => sum + each, 0) / Math.max(1, kept.length)) * calls;
    },
    calls: () => calls,
  };
}
