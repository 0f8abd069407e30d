/** Who is at a queue. */
export type QueueRole = 'submitter' | 'worker';

/** Shared bytes are kept this long after somebody has last asked for them, s. */
export const BYTES_KEPT_S = 7 * 24 * 3600;

/** Somebody who has not been heard of for this long is gone, ms. */
export const PRESENCE_MS = 45_000;

/** What submitters and workers tell each other beside the jobs. */
export interface QueueStore {
  hasBytes(name: string): Promise<boolean>;
  putBytes(name: string, bytes: Uint8Array): Promise<void>;
  getBytes(name: string): Promise<Uint8Array | null>;
  /** Says who is there, and with which version of the code; again every few seconds. */
  announce(role: QueueRole, id: string, version: string): Promise<void>;
  leave(role: QueueRole, id: string): Promise<void>;
  /** Versions of those who are there, one entry each. */
  versions(role: QueueRole): Promise<string[]>;
  /** Asks the workers to stop jobs, or takes that back. */
  setCancelled(jobIds: readonly string[], cancelled: boolean): Promise<void>;
  /** Those of the jobs that shall stop. */
  cancelledOf(jobIds: readonly string[]): Promise<string[]>;
}
