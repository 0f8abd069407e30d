import { randomUUID } from 'node:crypto';
import { DatabaseSync } from 'node:sqlite';
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import type { ResetOptions } from '../protocol/definition.ts';
import { errorCode, OpenEnvError } from '../protocol/errors.ts';
import { AcknowledgedMarks, type Mark, markOf, setNumber } from './acknowledged-marks.ts';
import {
  type EnvironmentName,
  type Logger,
  resetDigest,
  type SessionJournal,
  type SessionStore,
  type StoreCondition,
  type StoredSession,
  StoreMonitor,
  silentLogger,
  stepDigest,
} from './session-store.ts';
import {
  isBusy,
  LOCK_RETRY_MS,
  primaryCode,
  reasonOf,
  retryWhileLocked,
  SQLITE_CORRUPT,
  SQLITE_FULL,
  SQLITE_NOT_A_DATABASE,
} from './sqlite-lock.ts';
import {
  type EntryRow,
  makeTables,
  prepareStatements,
  RESET_STEP,
  type SessionRow,
  type Statements,
} from './sqlite-schema.ts';
import { StoreUsers } from './store-users.ts';

/** Limits of the file. */
export interface SqliteSessionStoreOptions {
  /** Sessions unused for this long, while a server ran, are deleted, ms. Default seven days. */
  readonly retentionMs?: number;
  /**
   * Limit of the file, bytes. From nine tenths of it on, the client that keeps most loses the sessions that it has not
   * used for longest. Default 1 GiB.
   */
  readonly maxBytes?: number;
  /** Limit of the sessions of one client, bytes. Default a quarter of `maxBytes`. */
  readonly maxClientBytes?: number;
  /** A session that was used this recently is not deleted to make room, ms. Default two minutes. */
  readonly restMs?: number;
  /** Longest wait for a database that another process has locked, ms. Default 5 s. */
  readonly lockTimeoutMs?: number;
  /** Path of the program, for other servers that open the file. Default: that of the process. */
  readonly program?: string;
  /** Log of failures. Default: none. */
  readonly logger?: Logger;
}

const DEFAULT_MAX_BYTES = 2 ** 30;
/**
 * Every session that has played a step since the last transaction has a page written to the log anew, so that pages of a
 * quarter of SQLite's default save the disk and the checksums most of their work. A file that is there keeps its own.
 */
const PAGE_BYTES = 1024;
/** Pages of the log between checkpoints, which wait for the disk: eight times SQLite's default doubles the steps a second. */
const CHECKPOINT_PAGES = 8000;
/** A log that has grown beyond this is cut after a checkpoint, bytes. */
const LOG_BYTES = 16 * 2 ** 20;
/** Resolution of `used_at`, ms, and of `bytes`. */
const USE_RESOLUTION_MS = 60_000;
const SIZE_RESOLUTION_BYTES = 65_536;
/** Bytes that a session and an entry take beside their texts, about. */
const SESSION_BYTES = 400;
const ENTRY_BYTES = 40;
/** Shares of the file's limit between which it is pruned. */
const PRUNE_FROM = 0.9;
const PRUNE_TO = 0.8;
/** Free pages that stay in the file for the next sessions, bytes, and as many as are given back at once, pages. */
const SLACK_BYTES = 4 * 2 ** 20;
const VACUUM_PAGES = 250;
/** Sessions that are deleted in one transaction when the file is too large. */
const PRUNED_AT_ONCE = 5;
const UPKEEP_INTERVAL_MS = 60_000;

/** Something to write in the next transaction. */
interface Entry {
  readonly sessionId: string;
  /** Returns why it may not be written, or its mark. */
  write(): Mark | Error;
  /** True for an entry of one statement, which is atomic without a transaction. */
  readonly isOneStatement: boolean;
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

/**
 * Keeps sessions in a SQLite file. All entries of one turn of the event loop go into one transaction. An entry is safe
 * against `kill -9` of the process when its promise resolves; against loss of power only after SQLite's next checkpoint.
 * A session that comes back shorter than what was acknowledged, or changed, is refused as damaged. Processes that share
 * the file can take sessions over from one another.
 * @throws OpenEnvError `STORE_ERROR` when the file cannot be used.
 */
export function openSqliteStore(path: string, options: SqliteSessionStoreOptions = {}): SessionStore {
  return new SqliteSessionStore(path, options);
}

class SqliteSessionStore implements SessionStore {
  readonly owner = randomUUID();
  readonly statements: Statements;
  readonly #database: DatabaseSync;
  readonly #marks: AcknowledgedMarks;
  readonly #users: StoreUsers;
  readonly #monitor: StoreMonitor;
  readonly #logger: Logger;
  readonly #lockTimeoutMs: number;
  readonly #retentionMs: number;
  readonly #restMs: number;
  readonly #maxBytes: number;
  readonly #maxClientBytes: number;
  readonly #pageBytes: number;
  readonly #clockAtStart: number;
  readonly #startedAt = performance.now();
  readonly #upkeepTimer: NodeJS.Timeout;
  #entries: Entry[] = [];
  #flushing: Promise<void> | null = null;
  #upkeep: Promise<void> | null = null;
  /** Bytes that may be written before the size of the file is looked at. */
  #allowance = 0;
  #isClosed = false;

  constructor(path: string, options: SqliteSessionStoreOptions) {
    const { retentionMs = 7 * 86_400_000, restMs = 120_000, lockTimeoutMs = 5000 } = options;
    this.#lockTimeoutMs = lockTimeoutMs;
    this.#retentionMs = retentionMs;
    this.#restMs = restMs;
    this.#maxBytes = options.maxBytes ?? DEFAULT_MAX_BYTES;
    this.#maxClientBytes = options.maxClientBytes ?? Math.ceil(this.#maxBytes / 4);
    this.#logger = options.logger ?? silentLogger;
    this.#monitor = new StoreMonitor(this.#logger);
    let database: DatabaseSync | undefined;
    try {
      database = new DatabaseSync(path, { timeout: lockTimeoutMs });
      database.exec(
        `PRAGMA page_size = ${PAGE_BYTES}; PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;
         PRAGMA wal_autocheckpoint = ${CHECKPOINT_PAGES}; PRAGMA journal_size_limit = ${LOG_BYTES}`,
      );
      makeTables(database);
      this.#database = database;
      this.#pageBytes = limitSize(database, this.#maxBytes);
      this.statements = prepareStatements(database);
      this.#clockAtStart = (this.statements.readClock.get() as { ms: number }).ms;
      this.#users = new StoreUsers(database, this.owner, this.#clockAtStart, options.program);
      this.#marks = new AcknowledgedMarks(`${path}-marks`);
      if (this.#marks.isNew && (this.statements.hasSessions.get() as { yes: number }).yes === 1) {
        this.#logger.warn({ path: `${path}-marks` }, 'sessions that lost their last steps cannot be told');
      }
      this.#deleteUnused();
      // From here on waiting for a lock must not stop the event loop: transactions are tried again instead.
      database.exec('PRAGMA busy_timeout = 0');
    } catch (error) {
      if (database?.isOpen) database.close();
      throw new OpenEnvError(
        'STORE_ERROR',
        { problem: `Could not open the sessions in ${path}: ${(error as Error).message}` },
        { cause: error },
      );
    }
    this.#upkeepTimer = setInterval(() => this.#startUpkeep(), UPKEEP_INTERVAL_MS).unref();
    this.#startUpkeep();
  }

  /** Time for which the file has been served, ms. A wrong clock of the machine does not change it. */
  get now(): number {
    return Math.round(this.#clockAtStart + performance.now() - this.#startedAt);
  }

  open(id: string, environment: EnvironmentName, client = ''): SessionJournal {
    return new SqliteJournal(this, id, environment, client);
  }

  async take(id: string): Promise<StoredSession | undefined> {
    await this.#written();
    const { takeSession, readEntries } = this.statements;
    return this.#retryWhileLocked('read', () => {
      try {
        return this.transact(() => {
          const row = takeSession.get(this.owner, this.now, id) as SessionRow | undefined;
          return row && this.#restore(id, row, readEntries.all(row.key) as unknown as EntryRow[]);
        });
      } catch (error) {
        if (!isCorrupt(error)) throw error;
        this.#monitor.damaged(id, (error as Error).message);
        throw new OpenEnvError(
          'SESSION_DAMAGED',
          { id, damage: `${(error as Error).message}.` },
          { cause: error },
        );
      }
    });
  }

  remove(id: string): Promise<void> {
    return this.#retryWhileLocked('write', () => void this.statements.removeSession.run(id, this.owner));
  }

  condition(): StoreCondition {
    let bytes: number | null = null;
    try {
      bytes = this.#isClosed
        ? null
        : (this.statements.pages.get() as { pages: number }).pages * this.#pageBytes;
    } catch {
      // The size of a locked or damaged file is not known; `problem` says why.
    }
    const { others: sharedWith, lastProgram } = this.#users;
    return { ...this.#monitor.condition, bytes, sharedWith, lastProgram };
  }

  async close(): Promise<void> {
    clearInterval(this.#upkeepTimer);
    await this.#written();
    await this.#upkeep;
    if (this.#isClosed) return;
    this.#isClosed = true;
    try {
      this.statements.saveClock.run(this.now);
      this.#users.close();
    } catch {
      // Another process may hold the lock. The clock loses a minute, and the next server sees from the process that this one ended.
    }
    this.#database.close();
    this.#marks.close();
  }

  /** Puts an entry into the next transaction. */
  write(sessionId: string, isOneStatement: boolean, bytes: number, write: () => Mark | Error): Promise<void> {
    this.#monitor.began();
    this.#allowance -= bytes;
    return new Promise((resolve, reject) => {
      this.#entries.push({ sessionId, isOneStatement, write, resolve, reject });
      if (this.#entries.length === 1 && this.#flushing === null) setImmediate(() => void this.#flush());
    });
  }

  /** Makes room for what a client wants to keep. Returns why it may not. */
  refusal(client: string, bytes: number, sessionId: string): OpenEnvError | null {
    if (client === '') return null;
    const { readBytes, deleteOfClient } = this.statements;
    for (let most = 1; ; most *= 2) {
      const kept = (readBytes.get(client) as { bytes: number } | undefined)?.bytes ?? 0;
      if (kept + bytes <= this.#maxClientBytes) return null;
      if (deleteOfClient.run(client, this.now - this.#restMs, sessionId, most).changes === 0) {
        return new OpenEnvError('STORE_QUOTA', { bytes: this.#maxClientBytes });
      }
    }
  }

  /** Why an entry of a session found no session to belong to. */
  lost(id: string): Error {
    const row = this.statements.readOwner.get(id) as { owner: string } | undefined;
    return row === undefined
      ? new OpenEnvError('SESSION_DELETED', { id })
      : new OpenEnvError('SESSION_TAKEN', { id });
  }

  async isOwned(id: string): Promise<boolean> {
    const row = await this.#retryWhileLocked('read', () => this.statements.readOwner.get(id));
    return (row as { owner: string } | undefined)?.owner === this.owner;
  }

  transact<T>(transaction: () => T): T {
    this.statements.begin.run();
    try {
      const value = transaction();
      this.statements.commit.run();
      return value;
    } catch (error) {
      if (this.#database.isTransaction) this.statements.rollback.run();
      throw error;
    }
  }

  #restore(id: string, row: SessionRow, entries: readonly EntryRow[]): StoredSession {
    const environment = { id: row.environment, version: row.version };
    const acknowledged = this.#marks.read(row.key, id);
    const damage = damageOf(id, row, entries, acknowledged);
    if (damage !== undefined) this.#monitor.damaged(id, damage);
    const texts = damage === undefined ? entries.map(({ text }) => JSON.parse(text) as unknown) : [{}];
    return {
      environment,
      client: row.client,
      episodeId: row.episode_id,
      reset: texts[0] as ResetOptions,
      actions: texts.slice(1),
      ...(damage !== undefined && { damage }),
      journal: new SqliteJournal(this, id, environment, row.client, {
        key: row.key,
        number: row.number,
        digest: entries.at(-1)?.digest ?? '',
      }),
    };
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

  /** Writes entries and settles their promises. False, with nothing settled, when the lock is worth another try. */
  #settle(entries: readonly Entry[], isLastTry: boolean): boolean {
    if (entries.length === 0) return true;
    let outcomes: (Mark | Error)[];
    try {
      outcomes = this.#writeAll(entries);
    } catch (error) {
      if (isBusy(error) && !isLastTry) return false;
      if (entries.length > 1 && !isBusy(error)) {
        // One that fails takes no other with it.
        for (const entry of entries) this.#settle([entry], isLastTry);
        return true;
      }
      const failure = storeError('write', error);
      this.#monitor.failed(entries.length, reasonOf(error));
      for (const entry of entries) entry.reject(failure);
      if (primaryCode(error) === SQLITE_FULL) this.#startUpkeep();
      return true;
    }
    this.#acknowledge(entries, outcomes);
    if (this.#allowance < 0) this.#startUpkeep();
    return true;
  }

  #acknowledge(entries: readonly Entry[], outcomes: readonly (Mark | Error)[]): void {
    const marks = outcomes.filter((outcome): outcome is Mark => !(outcome instanceof Error));
    try {
      this.#marks.write(marks);
    } catch (error) {
      this.#logger.error({ err: error }, 'marks of sessions cannot be written');
    }
    if (marks.length > 0) this.#monitor.written(marks.length);
    this.#monitor.refused(entries.length - marks.length);
    for (const [index, entry] of entries.entries()) {
      const outcome = outcomes[index];
      if (!(outcome instanceof Error)) {
        entry.resolve();
        continue;
      }
      if (errorCode(outcome) === 'STORE_QUOTA') this.#monitor.overQuota();
      entry.reject(outcome);
    }
  }

  #writeAll(entries: readonly Entry[]): (Mark | Error)[] {
    const write = () => entries.map((entry) => entry.write());
    return entries.length === 1 && entries[0].isOneStatement ? write() : this.transact(write);
  }

  /** Resolves when everything noted so far is written. */
  async #written(): Promise<void> {
    if (this.#flushing !== null || this.#entries.length > 0) await this.#flush();
  }

  async #retryWhileLocked<T>(what: 'read' | 'write', run: () => T): Promise<T> {
    try {
      return await retryWhileLocked(this.#lockTimeoutMs, run);
    } catch (error) {
      if (errorCode(error) === 'SESSION_DAMAGED') throw error;
      throw storeError(what, error);
    }
  }

  #startUpkeep(): void {
    // A lock or a full disk only puts this off until the next time.
    this.#upkeep ??= this.#keepUp()
      .catch(() => {})
      .finally(() => {
        this.#upkeep = null;
      });
  }

  /** Deletes what is too old or too much, a little at a time, and gives the room back. */
  async #keepUp(): Promise<void> {
    const { saveClock } = this.statements;
    await retryWhileLocked(this.#lockTimeoutMs, () => {
      saveClock.run(this.now);
      this.#users.seen(this.now);
    });
    while (await this.#pruned(() => this.#deleteUnused())) await nextTurn();
    if (this.#usedBytes() > PRUNE_FROM * this.#maxBytes) {
      const isTooMuch = () => this.#usedBytes() > PRUNE_TO * this.#maxBytes;
      while (isTooMuch() && (await this.#pruned(() => this.#deleteOfLargestClient()))) await nextTurn();
    }
    this.#allowance = Math.max(0.02 * this.#maxBytes, PRUNE_FROM * this.#maxBytes - this.#usedBytes());
    while (!this.#isClosed && this.#freeBytes() > SLACK_BYTES) {
      const before = this.#freeBytes();
      await retryWhileLocked(this.#lockTimeoutMs, () =>
        this.#database.exec(`PRAGMA incremental_vacuum(${VACUUM_PAGES})`),
      );
      // A file that was made without `auto_vacuum` keeps its size, and uses the room again.
      if (this.#freeBytes() >= before) break;
      await nextTurn();
    }
  }

  async #pruned(prune: () => number): Promise<boolean> {
    if (this.#isClosed) return false;
    return (await retryWhileLocked(this.#lockTimeoutMs, () => this.transact(prune))) > 0;
  }

  #deleteUnused(): number {
    return Number(this.statements.deleteUnused.run(this.now - this.#retentionMs).changes);
  }

  #deleteOfLargestClient(): number {
    const before = this.now - this.#restMs;
    const client = this.statements.largestClient.get(before) as { id: string } | undefined;
    return client
      ? Number(this.statements.deleteOfClient.run(client.id, before, '', PRUNED_AT_ONCE).changes)
      : 0;
  }

  #usedBytes(): number {
    const { pages, free } = this.statements.pages.get() as { pages: number; free: number };
    return (pages - free) * this.#pageBytes;
  }

  #freeBytes(): number {
    return (this.statements.pages.get() as { free: number }).free * this.#pageBytes;
  }
}

class SqliteJournal implements SessionJournal {
  readonly #store: SqliteSessionStore;
  readonly #id: string;
  readonly #environment: EnvironmentName;
  readonly #client: string;
  readonly #mark: Buffer;
  #key: number;
  /** Number of the entry of the last reset. */
  #number: number;
  #digest: string;
  #usedAt = Number.NEGATIVE_INFINITY;
  /** Bytes that are not counted in the store yet. */
  #uncounted = 0;

  constructor(
    store: SqliteSessionStore,
    id: string,
    environment: EnvironmentName,
    client: string,
    taken: { readonly key: number; readonly number: number; readonly digest: string } = {
      ...{ key: 0, number: 0, digest: '' },
    },
  ) {
    this.#store = store;
    this.#id = id;
    this.#environment = environment;
    this.#client = client;
    this.#mark = markOf(id);
    this.#key = taken.key;
    this.#number = taken.number;
    this.#digest = taken.digest;
  }

  reset(episodeId: string, options: ResetOptions): Promise<void> {
    const { saveReset, takeKey, clearEntries, saveEntry } = this.#store.statements;
    const { id, version } = this.#environment;
    const text = JSON.stringify(options);
    const bytes = SESSION_BYTES + text.length;
    this.#digest = resetDigest(this.#id, this.#environment, episodeId, text);
    return this.#store.write(this.#id, false, bytes, () => {
      const { owner, now } = this.#store;
      const refusal = this.#store.refusal(this.#client, bytes, this.#id);
      if (refusal) return refusal;
      const row = saveReset.get(this.#id, id, version, owner, this.#client, episodeId, bytes, now);
      if (!row) return this.#store.lost(this.#id);
      ({ key: this.#key, number: this.#number } = row as { key: number; number: number });
      this.#usedAt = now;
      this.#uncounted = 0;
      takeKey.run(this.#key);
      clearEntries.run(this.#key);
      saveEntry.run(RESET_STEP, text, this.#digest, this.#key, this.#id, owner);
      return this.#markOf(this.#number);
    });
  }

  step(index: number, action: unknown): Promise<void> {
    const text = JSON.stringify(action);
    const bytes = ENTRY_BYTES + text.length;
    this.#digest = stepDigest(this.#digest, text);
    const digest = this.#digest;
    this.#uncounted += bytes;
    return this.#store.write(this.#id, true, bytes, () => {
      const refusal = this.#count();
      if (refusal) return refusal;
      const { statements, owner } = this.#store;
      const { changes } = statements.saveEntry.run(index, text, digest, this.#key, this.#id, owner);
      return changes === 1 ? this.#markOf(this.#number + index + 1) : this.#store.lost(this.#id);
    });
  }

  isOwned(): Promise<boolean> {
    return this.#number === 0 ? Promise.resolve(true) : this.#store.isOwned(this.#id);
  }

  #markOf(number: number): Mark {
    setNumber(this.#mark, number);
    return { key: this.#key, bytes: this.#mark };
  }

  /** Notes from time to time that the session is used, and how long it has become. */
  #count(): OpenEnvError | null {
    const { now, owner, statements } = this.#store;
    if (now - this.#usedAt <= USE_RESOLUTION_MS && this.#uncounted < SIZE_RESOLUTION_BYTES) return null;
    const refusal = this.#store.refusal(this.#client, this.#uncounted, this.#id);
    if (refusal) return refusal;
    statements.saveUse.run(now, this.#uncounted, this.#key, this.#id, owner);
    this.#usedAt = now;
    this.#uncounted = 0;
    return null;
  }
}

/** Damage to a journal, as a sentence. */
function damageOf(
  id: string,
  row: SessionRow,
  entries: readonly EntryRow[],
  acknowledged: number | undefined,
): string | undefined {
  let digest = '';
  for (const [index, entry] of entries.entries()) {
    const step = index + RESET_STEP;
    if (entry.step !== step)
      return step === RESET_STEP ? 'its reset is missing.' : `step ${step} is missing.`;
    digest =
      step === RESET_STEP
        ? resetDigest(id, { id: row.environment, version: row.version }, row.episode_id, entry.text)
        : stepDigest(digest, entry.text);
    if (digest !== entry.digest)
      return step === RESET_STEP ? 'its reset was changed.' : `step ${step} was changed.`;
  }
  if (entries.length === 0) return 'its reset is missing.';
  const missing = acknowledged === undefined ? 0 : acknowledged - (row.number + entries.length - 1);
  return missing > 0 ? `its last ${missing} entries are missing.` : undefined;
}

/** Returns the size of a page, bytes. */
function limitSize(database: DatabaseSync, maxBytes: number): number {
  const { page_size: pageBytes } = database.prepare('PRAGMA page_size').get() as { page_size: number };
  database.exec(`PRAGMA max_page_count = ${Math.max(1, Math.floor(maxBytes / pageBytes))}`);
  return pageBytes;
}

function isCorrupt(error: unknown): boolean {
  const code = primaryCode(error);
  return code === SQLITE_CORRUPT || code === SQLITE_NOT_A_DATABASE;
}

function storeError(what: 'read' | 'write', error: unknown): OpenEnvError {
  const done = what === 'write' ? 'saved' : 'read';
  return new OpenEnvError(
    'STORE_ERROR',
    { problem: `The session could not be ${done}: ${reasonOf(error)}.` },
    { cause: error },
  );
}
