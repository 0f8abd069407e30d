import { type EnvironmentDefinition, EnvironmentError, type ResetOptions } from '../protocol/definition.ts';
import { openEnvError } from '../protocol/errors.ts';
import type { Session } from './session.ts';

/** A refusal is told for this long, ms. */
const REFUSAL_MS = 30_000;

interface CapacityLimits {
  readonly maxSessions: number;
  /** Largest episode, and the most that all episodes have together, in the units of the environment's `episodeSize`. */
  readonly maxEpisodeSize: number;
  readonly maxTotalSize: number;
}

/** Slots of a server with the episodes in them, until they are given back. */
export interface Lease {
  readonly slots: number;
  readonly size: number;
  /**
   * Counts a new episode in each slot instead of the one before. Episodes in slots that were given back count no more.
   * @throws EnvironmentError `CAPACITY_REACHED`, `EPISODE_TOO_LARGE`
   */
  admit(options: ResetOptions): void;
  release(): void;
}

export type Capacity = ReturnType<typeof capacityOf>;

/**
 * The slots of a server and the size of all episodes in memory. Leases hold both, and nothing else does.
 * @param resting the sessions that may be evicted, those used least recently first
 */
export function capacityOf(
  definition: EnvironmentDefinition,
  limits: CapacityLimits,
  resting: () => readonly Session[],
  evict: (session: Session) => void,
) {
  const taken = { slots: 0, size: 0, refusals: 0 };
  let refusedAt = Number.NEGATIVE_INFINITY;
  return {
    limits,
    /** Slots that are taken, the size of all episodes together, and how often capacity was refused. */
    taken: taken as Readonly<typeof taken>,
    /** That capacity was refused lately, as a sentence; `null` when it was not. */
    get problem(): string | null {
      const seconds = (performance.now() - refusedAt) / 1000;
      if (seconds * 1000 > REFUSAL_MS) return null;
      const { maxSessions, maxTotalSize } = limits;
      const { slots } = taken;
      const size = `${Math.ceil(taken.size)}${Number.isFinite(maxTotalSize) ? ` of ${maxTotalSize}` : ''}`;
      return `Capacity was refused ${seconds.toFixed(1)} s ago. Taken now: ${slots} of ${maxSessions} sessions, with episodes of ${size} requests together.`;
    },
    ...{ episodeSize, hold },
  };

  /** Size of an episode. @throws EnvironmentError `EPISODE_TOO_LARGE` over the limit of one episode */
  function episodeSize(options: ResetOptions): number {
    const size = definition.episodeSize?.(options) ?? 1;
    if (size <= limits.maxEpisodeSize) return size;
    const problem = `Expected an episode of at most ${limits.maxEpisodeSize} requests, got one of about ${Math.ceil(size)}. Lower the rate, or send fewer requests.`;
    throw new EnvironmentError('EPISODE_TOO_LARGE', problem);
  }

  /**
   * Takes slots for what is made in them, which gives them back by `release` of its lease. They are given back at once
   * when it cannot be made.
   * @param options of an episode in each slot, which is counted from the start
   * @throws EnvironmentError `CAPACITY_REACHED`, `EPISODE_TOO_LARGE`, or what `make` throws
   */
  function hold<Made>(slots: number, make: (lease: Lease) => Made, options?: ResetOptions): Made {
    const lease: Lease = {
      ...{ slots: 0, size: 0 },
      admit: (next) => lease.slots > 0 && take(lease, lease.slots, next),
      release: () => set(lease, 0, 0),
    };
    take(lease, slots, options);
    const fail = (error: unknown): never => {
      lease.release();
      throw error;
    };
    try {
      const made = make(lease);
      return made instanceof Promise ? (made.catch(fail) as Made) : made;
    } catch (error) {
      return fail(error);
    }
  }

  /** Lets a lease have so many slots, with an episode of these options in each. Evicts no session in vain. */
  function take(lease: Lease, slots: number, options?: ResetOptions): void {
    const { maxSessions, maxTotalSize } = limits;
    const size = options === undefined ? 0 : slots * episodeSize(options);
    if (size > maxTotalSize) {
      const problem = `Expected at most ${maxTotalSize} requests in all episodes together, got ${slots} episodes of about ${size / slots}. Ask for fewer or smaller ones.`;
      throw new EnvironmentError('EPISODE_TOO_LARGE', problem);
    }
    let slotsOver = taken.slots - lease.slots + slots - maxSessions;
    let sizeOver = taken.size - lease.size + size - maxTotalSize;
    const isFull = () => slotsOver > 0 || sizeOver > 0;
    const leaving: Session[] = [];
    for (const session of isFull() ? resting() : []) {
      if (!isFull()) break;
      if (session.lease === lease) continue;
      leaving.push(session);
      slotsOver -= session.lease?.slots ?? 0;
      sizeOver -= session.lease?.size ?? 0;
    }
    if (isFull()) {
      taken.refusals++;
      refusedAt = performance.now();
      const others = Math.ceil(taken.size - lease.size);
      throw openEnvError('CAPACITY_REACHED', {
        active_sessions: taken.slots,
        max_sessions: maxSessions,
        ...(slotsOver <= 0 && { episodes: { others, asked: Math.ceil(size), most: maxTotalSize } }),
      });
    }
    for (const session of leaving) evict(session);
    set(lease, slots, size);
  }

  function set(lease: Lease, slots: number, size: number): void {
    taken.slots += slots - lease.slots;
    taken.size += size - lease.size;
    Object.assign(lease, { slots, size });
  }
}
