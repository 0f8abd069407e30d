import { hash } from 'node:crypto';
import type { EnvironmentError, ResetOptions } from '../protocol/definition.ts';
import { openEnvError } from '../protocol/errors.ts';
import { type EnvironmentName, readEntry, stepDigest } from './journal-entry.ts';
import { writeReset } from './off-loop.ts';

/** Log of a server. A pino logger is one. */
export interface Logger {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

export const silentLogger: Logger = { info() {}, warn() {}, error() {} };
/** Writes failures to standard error, with their stack. */
export const failureLogger: Logger = {
  ...silentLogger,
  error: ({ err }: { readonly err?: unknown }, message) =>
    console.error(`error: ${message}`, ...(err === undefined ? [] : [err])),
};

/** Storage for the episodes of sessions, which outlive the process that played them. */
export interface SessionStore {
  /**
   * A journal for a session that is new. Nothing is kept before its first reset.
   * @param client Digest of who opened it. Without one no quota applies.
   */
  open(id: string, environment: EnvironmentName, client?: string): SessionJournal;
  /**
   * Takes a session over from whoever played it, who can write to it no more. `undefined` when none is kept.
   * @throws EnvironmentError `STORE_ERROR`, `SESSION_DAMAGED`
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
}

/** The written side of one session. Each promise resolves when the entry is safe against the loss of the process. */
export interface SessionJournal {
  /** @throws EnvironmentError `STORE_ERROR`, `STORE_QUOTA`, `SESSION_TAKEN`, `SESSION_DELETED` */
  reset(episodeId: string, options: ResetOptions): Promise<void>;
  /**
   * Notes the action of the step with this index, from 0.
   * @throws EnvironmentError `STORE_ERROR`, `STORE_QUOTA`, `SESSION_TAKEN`, `SESSION_DELETED`
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

/** Where a store writes the entries of a journal, as JSON with the digest of the chain up to each. */
export interface EntryWriter {
  reset(episodeId: string, text: string, digest: string): Promise<void>;
  step(index: number, text: string, digest: string): Promise<void>;
  isOwned(): Promise<boolean>;
}

/**
 * A journal as a chain: the digest of each entry covers the entry and the digest before it, so that an entry that was
 * changed, removed or put elsewhere is found. It is no protection against people who may write to the store.
 * @param digest of the entries that are there already
 */
export function chainedJournal(
  sessionId: string,
  environment: EnvironmentName,
  writer: EntryWriter,
  digest = '',
): SessionJournal {
  let last = digest;
  return {
    async reset(episodeId, options) {
      const { text, digest } = await writeReset(options, sessionId, environment, episodeId);
      last = digest;
      return writer.reset(episodeId, text, digest);
    },
    step(index, action) {
      const text = JSON.stringify(action);
      last = stepDigest(last, text);
      return writer.step(index, text, last);
    },
    isOwned: () => writer.isOwned(),
  };
}

/** A kept session of its entries as they are written, that of the reset first. Those of a damaged one are not read. */
export function storedSession(
  about: Pick<StoredSession, 'environment' | 'client' | 'episodeId'>,
  entries: readonly string[],
  damage: string | undefined,
  journal: SessionJournal,
): StoredSession {
  const [reset = {}, ...actions] = damage === undefined ? (entries.map(readEntry) as ResetOptions[]) : [];
  return { ...about, reset, actions, ...(damage !== undefined && { damage }), journal };
}

/** @param problem as a sentence */
export function storeError(problem: string, cause?: unknown): EnvironmentError {
  return openEnvError('STORE_ERROR', { problem }, { cause });
}

/** Options that all stores of sessions have. */
export const STORE_DEFAULTS = {
  /** Sessions unused for this long, while a server ran, are deleted, ms. Default seven days. */
  retentionMs: 7 * 86_400_000,
  /** A session that was used this recently is not deleted to make room, ms. Default two minutes. */
  restMs: 120_000,
  /** Log of failures. Default: none. */
  logger: silentLogger,
};

/** Bytes that a session and an entry take beside their texts, about. */
export const SESSION_BYTES = 400;
export const ENTRY_BYTES = 40;

/** Name of a session in logs. Its id is the key to it. */
export function sessionLabel(id: string): string {
  return hash('sha256', id).slice(0, 12);
}

/** Entries that wait longer than this have met trouble, ms. */
const STALL_MS = 1000;
/** A failure is reported for this long, unless an entry is written before, ms. */
const FAILURE_MS = 30_000;
/** Log entries of failures are at least this far apart, ms. */
const LOG_INTERVAL_MS = 10_000;

/** Watches whether a store makes progress. */
export class StoreMonitor {
  readonly #logger: Logger;
  readonly #counts = { failedWrites: 0, refusedWrites: 0, damagedSessions: 0 };
  #waiting = 0;
  #progressAt = 0;
  #failure: { readonly reason: string; readonly at: number; readonly entries: number } | null = null;
  #loggedAt = Number.NEGATIVE_INFINITY;

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  /** An entry waits to be written. */
  began(): void {
    if (this.#waiting++ === 0) this.#progressAt = performance.now();
  }

  written(entries: number): void {
    this.#waiting -= entries;
    this.#progressAt = performance.now();
    if (this.#failure === null) return;
    this.#failure = null;
    this.#loggedAt = Number.NEGATIVE_INFINITY;
    this.#logger.warn({ failedWrites: this.#counts.failedWrites }, 'sessions are written again');
  }

  /** A read has succeeded, which ends the failure of a read, not that of a write: a full store can be read. */
  readAgain(): void {
    if (this.#failure?.entries === 0 && this.#waiting === 0) this.written(0);
  }

  /** So many entries are lost, none where it was a read that failed. */
  failed(entries: number, reason: string): void {
    const now = performance.now();
    this.#waiting -= entries;
    this.#counts.failedWrites += entries;
    this.#progressAt = now;
    this.#failure = { reason, at: now, entries };
    if (now - this.#loggedAt < LOG_INTERVAL_MS) return;
    this.#loggedAt = now;
    const { failedWrites } = this.#counts;
    this.#logger.error({ failedWrites, reason }, 'sessions cannot be written');
  }

  /** So many entries were refused for a reason that is no failure of the store. */
  refused(entries: number): void {
    this.#waiting -= entries;
    this.#progressAt = performance.now();
  }

  overQuota(): void {
    this.#counts.refusedWrites++;
  }

  damaged(session: string, damage: string): void {
    this.#counts.damagedSessions++;
    this.#logger.error({ session: sessionLabel(session), damage }, 'a session is damaged');
  }

  get condition(): Omit<StoreCondition, 'bytes'> {
    return { problem: this.#problem(), ...this.#counts };
  }

  #problem(): string | null {
    const now = performance.now();
    if (this.#waiting > 0 && now - this.#progressAt > STALL_MS) {
      return `${this.#waiting} entries of sessions have waited ${seconds(now - this.#progressAt)} to be written.`;
    }
    if (this.#failure === null || now - this.#failure.at > FAILURE_MS) return null;
    return `The last entry could not be written ${seconds(now - this.#failure.at)} ago: ${this.#failure.reason}.`;
  }
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}
