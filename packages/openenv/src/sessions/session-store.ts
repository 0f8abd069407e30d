import { hash } from 'node:crypto';
import type { ResetOptions } from '../definition.ts';
import type { StoreUser } from './store-users.ts';

/** The environment that a session is played on. */
export interface EnvironmentName {
  readonly id: string;
  readonly version: string;
}

/** Storage for the episodes of sessions, which outlive the process that played them. */
export interface SessionStore {
  /**
   * A journal for a session that is new. Nothing is kept before its first reset.
   * @param client Digest of who opened it. Without one no quota applies.
   */
  open(id: string, environment: EnvironmentName, client?: string): SessionJournal;
  /**
   * Takes a session over from whoever played it, who can write to it no more. `undefined` when none is kept.
   * @throws OpenEnvError `STORE_ERROR`, `SESSION_DAMAGED`
   */
  take(id: string): Promise<StoredSession | undefined>;
  /** Forgets a session. */
  remove(id: string): Promise<void>;
  /** Condition of the store, for `/health` and `/metrics`. */
  condition?(): StoreCondition;
  /** Writes what is still to be written, then lets go of the storage. */
  close(): Promise<void>;
}

/** Condition of a store. Counts begin when it is opened. */
export interface StoreCondition {
  /** Why entries are not being written, as a sentence; `null` when they are. */
  readonly problem: string | null;
  /** Entries that could not be written. */
  readonly failedWrites: number;
  /** Entries that were refused because their client keeps too much. */
  readonly refusedWrites: number;
  /** Sessions that were asked for and found damaged. */
  readonly damagedSessions: number;
  /** Size of the file, bytes; `null` where it is not known. */
  readonly bytes: number | null;
  /** Other servers that had the file open when the store was opened. */
  readonly sharedWith?: readonly StoreUser[];
  /** Program of the server that used the file before, when it is another one. */
  readonly lastProgram?: string | null;
}

/** The written side of one session. Each promise resolves when the entry is safe against the loss of the process. */
export interface SessionJournal {
  /** @throws OpenEnvError `STORE_ERROR`, `STORE_QUOTA`, `SESSION_TAKEN`, `SESSION_DELETED` */
  reset(episodeId: string, options: ResetOptions): Promise<void>;
  /**
   * Notes the action of the step with this index, from 0.
   * @throws OpenEnvError `STORE_ERROR`, `STORE_QUOTA`, `SESSION_TAKEN`, `SESSION_DELETED`
   */
  step(index: number, action: unknown): Promise<void>;
  /** False when another process has taken the session over, and this one may not write. */
  isOwned(): Promise<boolean>;
}

/** A session as it is kept: enough to rebuild it by replay. */
export interface StoredSession {
  readonly environment: EnvironmentName;
  /** Digest of who opened it; empty when it is not known. */
  readonly client: string;
  readonly episodeId: string;
  readonly reset: ResetOptions;
  readonly actions: readonly unknown[];
  /** Damage to the journal, as a sentence: entries are missing or changed. The session must not be replayed. */
  readonly damage?: string;
  readonly journal: SessionJournal;
}

/**
 * A journal is a chain: the digest of each entry covers the entry and the digest before it, so that an entry that was
 * changed, removed or put elsewhere is found. It is no protection against people who may write to the store.
 */

/** Digest of a journal that begins with this reset. */
export function resetDigest(
  sessionId: string,
  environment: EnvironmentName,
  episodeId: string,
  reset: string,
): string {
  return digest(JSON.stringify([sessionId, environment.id, environment.version, episodeId, reset]));
}

/** Digest of a journal after one more step. */
export function stepDigest(before: string, action: string): string {
  return digest(before + action);
}

function digest(text: string): string {
  return hash('sha256', text, 'base64').slice(0, 8);
}
