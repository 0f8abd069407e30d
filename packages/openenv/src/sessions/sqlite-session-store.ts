import { randomUUID } from 'node:crypto';
import { DatabaseSync, type StatementSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ResetOptions } from '../definition.ts';
import { SessionStoreError, SessionTakenError } from './session-errors.ts';
import type { SessionJournal, SessionStore, StoredSession } from './session-store.ts';

/** Limits of the file. */
export interface SqliteSessionStoreOptions {
  /** A session that nobody has used for this long is forgotten, ms. Default seven days. */
  readonly retentionMs?: number;
  /** The file may not grow beyond this, bytes. Default: as far as the disk allows. */
  readonly maxBytes?: number;
  /** How long to wait for a database that another process has locked, ms. Default 5 s. */
  readonly lockTimeoutMs?: number;
}

const FORMAT = 1;
/**
 * Every session that has played a step since the last transaction has a page written to the log anew, so that pages of a
 * quarter of SQLite's default save the disk and the checksums most of their work. A file that is there keeps its own.
 */
const PAGE_BYTES = 1024;
/** Pages of the log between checkpoints, which wait for the disk: eight times SQLite's default doubles the steps a second. */
const CHECKPOINT_PAGES = 8000;
const SQLITE_BUSY = 5;
const SQLITE_FULL = 13;
const LOCK_RETRY_MS = 5;
/** How exactly `used_at` is kept, ms. */
const USE_RESOLUTION_MS = 60_000;
const FORGET_INTERVAL_MS = 3_600_000;

const SCHEMA = `
CREATE TABLE IF NOT EXISTS session (
  key INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  environment TEXT NOT NULL,
  version TEXT NOT NULL,
  owner TEXT NOT NULL,
  episode_id TEXT NOT NULL,
  reset TEXT NOT NULL,
  used_at INTEGER NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS session_used_at ON session (used_at);
CREATE TABLE IF NOT EXISTS action (
  session INTEGER NOT NULL,
  step INTEGER NOT NULL,
  action TEXT NOT NULL,
  PRIMARY KEY (session, step)
) STRICT, WITHOUT ROWID;
PRAGMA user_version = ${FORMAT};
`;

/** Something to write in the next transaction. Returns false when the session belongs to another process by now. */
interface Entry {
  readonly sessionId: string;
  write(): boolean;
  /** Whether the entry needs no transaction to be written as a whole or not at all. */
  readonly isOneStatement: boolean;
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

/**
 * Keeps sessions in a SQLite file. All entries of one turn of the event loop go into one transaction. An entry is safe
 * against `kill -9` of the process when its promise resolves; against loss of power only after SQLite's next checkpoint.
 * Processes that share the file can take sessions over from one another.
 * @throws SessionStoreError when the file cannot be used.
 */
export function openSqliteStore(path: string, options: SqliteSessionStoreOptions = {}): SessionStore {
  return new SqliteSessionStore(path, options);
}

class SqliteSessionStore implements SessionStore {
  readonly #database: DatabaseSync;
  readonly #owner = randomUUID();
  readonly #lockTimeoutMs: number;
  readonly #retentionMs: number;
  readonly #statements: ReturnType<typeof prepareStatements>;
  readonly #forgetTimer: NodeJS.Timeout;
  #entries: Entry[] = [];
  #flushing: Promise<void> | null = null;

  constructor(path: string, options: SqliteSessionStoreOptions) {
    const { retentionMs = 7 * 86_400_000, lockTimeoutMs = 5000, maxBytes } = options;
    this.#lockTimeoutMs = lockTimeoutMs;
    this.#retentionMs = retentionMs;
    try {
      this.#database = new DatabaseSync(path, { timeout: lockTimeoutMs });
      this.#database.exec(
        `PRAGMA page_size = ${PAGE_BYTES}; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = ${CHECKPOINT_PAGES}`,
      );
      const { user_version: format } = this.#database.prepare('PRAGMA user_version').get() as {
        user_version: number;
      };
      if (format > FORMAT) {
        throw new Error(`it has format ${format}, this version reads format ${FORMAT}`);
      }
      this.#database.exec(SCHEMA);
      if (maxBytes !== undefined) limitSize(this.#database, maxBytes);
      this.#forgetOld();
      // From here on waiting for a lock must not stop the event loop: transactions are tried again instead.
      this.#database.exec('PRAGMA busy_timeout = 0');
      this.#statements = prepareStatements(this.#database);
    } catch (error) {
      throw new SessionStoreError(`Could not open the sessions in ${path}: ${(error as Error).message}`, {
        cause: error,
      });
    }
    this.#forgetTimer = setInterval(() => this.#forgetWhenFree(), FORGET_INTERVAL_MS).unref();
  }

  open(id: string, environment: { readonly id: string; readonly version: string }): SessionJournal {
    return new SqliteJournal(this, this.#statements, this.#owner, id, environment);
  }

  async take(id: string): Promise<StoredSession | undefined> {
    await this.#written();
    const statements = this.#statements;
    return this.#whenFree('read', () => {
      const row = statements.takeSession.get(this.#owner, Date.now(), id) as SessionRow | undefined;
      if (!row) return undefined;
      const actions = statements.readActions.all(row.key) as unknown as { action: string }[];
      const environment = { id: row.environment, version: row.version };
      return {
        environment,
        episodeId: row.episode_id,
        reset: JSON.parse(row.reset) as ResetOptions,
        actions: actions.map(({ action }) => JSON.parse(action) as unknown),
        journal: new SqliteJournal(this, statements, this.#owner, id, environment, row.key),
      };
    });
  }

  remove(id: string): Promise<void> {
    const { removeActions, removeSession } = this.#statements;
    return this.write(id, false, () => {
      removeActions.run(id, this.#owner);
      removeSession.run(id, this.#owner);
      return true;
    });
  }

  async close(): Promise<void> {
    clearInterval(this.#forgetTimer);
    await this.#written();
    if (this.#database.isOpen) this.#database.close();
  }

  /** Puts an entry into the next transaction. */
  write(sessionId: string, isOneStatement: boolean, write: () => boolean): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#entries.push({ sessionId, isOneStatement, write, resolve, reject });
      if (this.#entries.length === 1 && this.#flushing === null) setImmediate(() => void this.#flush());
    });
  }

  /** Writes what there is to write: at once, unless another process holds the lock. */
  #flush(): Promise<void> | null {
    if (this.#flushing !== null) return this.#flushing;
    const entries = this.#takeEntries();
    if (!this.#settle(entries, false)) this.#flushing = this.#flushWhenFree(entries);
    return this.#flushing;
  }

  /** Writes entries that have just met a lock, and those that come while they wait. */
  async #flushWhenFree(first: readonly Entry[]): Promise<void> {
    for (let entries = first; entries.length > 0; entries = this.#takeEntries()) {
      const deadline = performance.now() + this.#lockTimeoutMs;
      // Waits before the first try: this must not end before its caller has set `#flushing`.
      do await sleep(LOCK_RETRY_MS);
      while (!this.#settle(entries, performance.now() > deadline));
    }
    // In the same breath as the last look at the entries, so that none can slip in between and wait for ever.
    this.#flushing = null;
  }

  #takeEntries(): readonly Entry[] {
    const entries = this.#entries;
    this.#entries = [];
    return entries;
  }

  /** Writes entries and tells how that went. False, with nothing told, when the lock is worth another try. */
  #settle(entries: readonly Entry[], isLastTry: boolean): boolean {
    if (entries.length === 0) return true;
    try {
      const owned = this.#writeAll(entries);
      for (const [index, entry] of entries.entries()) {
        if (owned[index]) entry.resolve();
        else entry.reject(new SessionTakenError(entry.sessionId));
      }
    } catch (error) {
      if (isBusy(error) && !isLastTry) return false;
      for (const entry of entries) entry.reject(storeError('write', error));
    }
    return true;
  }

  #writeAll(entries: readonly Entry[]): boolean[] {
    const write = () => entries.map((entry) => entry.write());
    return entries.length === 1 && entries[0]!.isOneStatement ? write() : this.#transact(write);
  }

  /** Resolves when everything noted so far is written. */
  async #written(): Promise<void> {
    if (this.#flushing !== null || this.#entries.length > 0) await this.#flush();
  }

  /** Runs a transaction, and tries again while another process holds the lock. */
  async #whenFree<T>(what: 'read' | 'write', transaction: () => T): Promise<T> {
    const deadline = performance.now() + this.#lockTimeoutMs;
    for (;;) {
      try {
        return this.#transact(transaction);
      } catch (error) {
        if (!isBusy(error) || performance.now() > deadline) throw storeError(what, error);
      }
      await sleep(LOCK_RETRY_MS);
    }
  }

  #transact<T>(transaction: () => T): T {
    this.#statements.begin.run();
    try {
      const value = transaction();
      this.#statements.commit.run();
      return value;
    } catch (error) {
      if (this.#database.isTransaction) this.#statements.rollback.run();
      throw error;
    }
  }

  #forgetOld(): void {
    const before = Date.now() - this.#retentionMs;
    this.#database
      .prepare('DELETE FROM action WHERE session IN (SELECT key FROM session WHERE used_at < ?)')
      .run(before);
    this.#database.prepare('DELETE FROM session WHERE used_at < ?').run(before);
  }

  #forgetWhenFree(): void {
    // A lock or a full disk only puts this off until the next time.
    this.#whenFree('write', () => this.#forgetOld()).catch(() => {});
  }
}

interface SessionRow {
  readonly key: number;
  readonly environment: string;
  readonly version: string;
  readonly episode_id: string;
  readonly reset: string;
}

class SqliteJournal implements SessionJournal {
  readonly #store: SqliteSessionStore;
  readonly #statements: ReturnType<typeof prepareStatements>;
  readonly #owner: string;
  readonly #id: string;
  readonly #environment: { readonly id: string; readonly version: string };
  #key: number | undefined;
  #usedAt = 0;

  constructor(
    store: SqliteSessionStore,
    statements: ReturnType<typeof prepareStatements>,
    owner: string,
    id: string,
    environment: { readonly id: string; readonly version: string },
    key?: number,
  ) {
    this.#store = store;
    this.#statements = statements;
    this.#owner = owner;
    this.#id = id;
    this.#environment = environment;
    this.#key = key;
  }

  reset(episodeId: string, options: ResetOptions): Promise<void> {
    const { saveReset, clearActions } = this.#statements;
    const { id, version } = this.#environment;
    return this.#store.write(this.#id, false, () => {
      const now = Date.now();
      const row = saveReset.get(this.#id, id, version, this.#owner, episodeId, JSON.stringify(options), now);
      if (!row) return false;
      this.#usedAt = now;
      this.#key = (row as { key: number }).key;
      clearActions.run(this.#key);
      return true;
    });
  }

  step(index: number, action: unknown): Promise<void> {
    const text = JSON.stringify(action);
    return this.#store.write(this.#id, true, () => {
      const key = this.#key!;
      const now = Date.now();
      if (now - this.#usedAt > USE_RESOLUTION_MS) {
        this.#usedAt = now;
        this.#statements.saveUse.run(now, key, this.#owner);
      }
      return this.#statements.saveAction.run(index, text, key, this.#owner).changes === 1;
    });
  }

  async isOwned(): Promise<boolean> {
    if (this.#key === undefined) return true;
    try {
      const row = this.#statements.readOwner.get(this.#key) as { owner: string } | undefined;
      return row?.owner === this.#owner;
    } catch (error) {
      throw storeError('read', error);
    }
  }
}

function limitSize(database: DatabaseSync, maxBytes: number): void {
  const { page_size: pageBytes } = database.prepare('PRAGMA page_size').get() as { page_size: number };
  database.exec(`PRAGMA max_page_count = ${Math.max(1, Math.floor(maxBytes / pageBytes))}`);
}

function prepareStatements(database: DatabaseSync) {
  const prepare = (sql: string): StatementSync => database.prepare(sql);
  return {
    begin: prepare('BEGIN IMMEDIATE'),
    commit: prepare('COMMIT'),
    rollback: prepare('ROLLBACK'),
    saveReset: prepare(
      `INSERT INTO session (id, environment, version, owner, episode_id, reset, used_at) VALUES (?, ?, ?, ?, ?, ?, ?)
       ON CONFLICT (id) DO UPDATE SET environment = excluded.environment, version = excluded.version,
         episode_id = excluded.episode_id, reset = excluded.reset, used_at = excluded.used_at
       WHERE owner = excluded.owner
       RETURNING key`,
    ),
    clearActions: prepare('DELETE FROM action WHERE session = ?'),
    saveAction: prepare(
      'INSERT INTO action (step, action, session) SELECT ?, ?, key FROM session WHERE key = ? AND owner = ?',
    ),
    saveUse: prepare('UPDATE session SET used_at = ? WHERE key = ? AND owner = ?'),
    takeSession: prepare(
      'UPDATE session SET owner = ?, used_at = ? WHERE id = ? RETURNING key, environment, version, episode_id, reset',
    ),
    readActions: prepare('SELECT action FROM action WHERE session = ? ORDER BY step'),
    readOwner: prepare('SELECT owner FROM session WHERE key = ?'),
    removeActions: prepare(
      'DELETE FROM action WHERE session = (SELECT key FROM session WHERE id = ? AND owner = ?)',
    ),
    removeSession: prepare('DELETE FROM session WHERE id = ? AND owner = ?'),
  };
}

/** Whether another process holds the lock. The code may say more in its higher bytes. */
function isBusy(error: unknown): boolean {
  return primaryCode(error) === SQLITE_BUSY;
}

function primaryCode(error: unknown): number {
  return ((error as { errcode?: number }).errcode ?? 0) & 0xff;
}

function storeError(what: 'read' | 'write', error: unknown): SessionStoreError {
  const code = primaryCode(error);
  const reason =
    code === SQLITE_FULL
      ? 'the disk is full, or the file has reached its limit. Make room'
      : code === SQLITE_BUSY
        ? 'another process holds the database locked. End it, or try again'
        : (error as Error).message;
  const done = what === 'write' ? 'saved' : 'read';
  return new SessionStoreError(`The session could not be ${done}: ${reason}.`, { cause: error });
}
