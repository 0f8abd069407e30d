import type { ResetOptions } from '../definition.ts';

/** Where the episodes of sessions are kept, so that they outlive the process that played them. */
export interface SessionStore {
  /** A journal for a session that is new. Nothing is kept before its first reset. */
  open(id: string, environment: { readonly id: string; readonly version: string }): SessionJournal;
  /**
   * Takes a session over from whoever played it, who can write to it no more. `undefined` when none is kept.
   * @throws SessionStoreError
   */
  take(id: string): Promise<StoredSession | undefined>;
  /** Forgets a session. */
  remove(id: string): Promise<void>;
  /** Writes what is still to be written, then lets go of the storage. */
  close(): Promise<void>;
}

/** The written side of one session. Each promise resolves when the entry is safe against the loss of the process. */
export interface SessionJournal {
  /** @throws SessionStoreError, SessionTakenError */
  reset(episodeId: string, options: ResetOptions): Promise<void>;
  /** Notes the action of the step with this index, from 0. @throws SessionStoreError, SessionTakenError */
  step(index: number, action: unknown): Promise<void>;
  /** Whether this process may still write: another may have taken the session over. */
  isOwned(): Promise<boolean>;
}

/** What is kept of a session: enough to rebuild it by replay. */
export interface StoredSession {
  readonly environment: { readonly id: string; readonly version: string };
  readonly episodeId: string;
  readonly reset: ResetOptions;
  readonly actions: readonly unknown[];
  readonly journal: SessionJournal;
}
