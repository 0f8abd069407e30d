import { randomUUID } from 'node:crypto';
import { existsSync, statSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { EnvironmentError } from '../protocol/definition.ts';
import { errorCode, openEnvError } from '../protocol/errors.ts';
import { withDefaults } from '../protocol/read-json.ts';
import { type EnvironmentName, resetDigest, stepDigest } from './journal-entry.ts';
import { OffLoop } from './off-loop.ts';
import {
  chainedJournal,
  ENTRY_BYTES,
  type EntryWriter,
  SESSION_BYTES,
  type SessionJournal,
  type SessionStore,
  STORE_DEFAULTS,
  type StoreCondition,
  type StoredSession,
  StoreMonitor,
  storedSession,
  storeError,
} from './session-store.ts';
import {
  formatOf,
  isBusy,
  isCorrupt,
  LOCK_TIMEOUT_MS,
  primaryCode,
  reasonOf,
  SQLITE_FULL,
  SqliteFile,
  setAside,
} from './sqlite-file.ts';
import {
  AcknowledgedMarks,
  type EntryRow,
  type Mark,
  markOf,
  RESET_STEP,
  SESSION_TABLES,
  type SessionRow,
  setNumber,
} from './sqlite-schema.ts';

function defaultOptions(maxBytes = 2 ** 30) {
  return {
    ...STORE_DEFAULTS,
    /** Limit of the file, bytes. */
    maxBytes,
    /** Limit of the sessions of one client, bytes. */
    maxClientBytes: Math.ceil(maxBytes / 4),
    /** Longest wait for a database that another process has locked, ms. Default 5 s. */
    lockTimeoutMs: LOCK_TIMEOUT_MS,
  };
}
type SqliteSessionStoreOptions = Readonly<ReturnType<typeof defaultOptions>>;

/**
 * Every session that has played a step since the last transaction has a page written to the log anew, so that pages of a
 * quarter of SQLite's default save the disk and the checksums most of their work. A file that is there keeps its own.
 */
const PAGE_BYTES = 1024;
/**
 * Pages of the log between checkpoints: eight times SQLite's default doubles the steps a second. A checkpoint waits for the
 * disk, on a thread. Where that cannot keep up, the event loop makes one after four times as many.
 */
const CHECKPOINT_PAGES = 8000;
/** Pages that an entry takes in the log beside those of its text, about. */
const ENTRY_PAGES = 4;
const thread = new OffLoop();
/** A log that has grown beyond this is cut after a checkpoint, bytes. */
const LOG_BYTES = 16 * 2 ** 20;
const PRAGMAS = `PRAGMA page_size = ${PAGE_BYTES}; PRAGMA auto_vacuum = INCREMENTAL;
  PRAGMA wal_autocheckpoint = ${4 * CHECKPOINT_PAGES}; PRAGMA journal_size_limit = ${LOG_BYTES};`;
/** Resolution of `used_at`, ms, and of `bytes`. */
const USE_RESOLUTION_MS = 60_000;
const SIZE_RESOLUTION_BYTES = 65_536;
/** Shares of the file's limit between which it is pruned. */
const PRUNE_FROM = 0.9;
const PRUNE_TO = 0.8;
/** Free pages that stay in the file for the next sessions, bytes, and as many as are given back at once, pages. */
const SLACK_BYTES = 4 * 2 ** 20;
const VACUUM_PAGES = 250;
/** Sessions that are deleted in one transaction when the file is too large. */
const PRUNED_AT_ONCE = 5;
const UPKEEP_INTERVAL_MS = 60_000;

interface Entry extends Pick<PromiseWithResolvers<void>, 'resolve' | 'reject'> {
  /** Returns why it may not be written, or its mark. */
  write(): Mark | Error;
  /** True for an entry of one statement, which is atomic without a transaction. */
  readonly isOneStatement: boolean;
}

/**
 * Keeps sessions in a SQLite file. All entries of one turn of the event loop go into one transaction. An entry is safe
 * against `kill -9` of the process when its promise resolves; against loss of power only after SQLite's next checkpoint.
 * A session that comes back shorter than what was acknowledged, or changed, is refused as damaged. Processes that share
 * the file can take sessions over from one another.
 *
 * From nine tenths of `maxBytes` (1 GiB) on, the client that keeps most loses the sessions that it has not used for longest.
 * The sessions of one client may take `maxClientBytes` (a quarter of that), and are deleted `retentionMs` (seven days) after
 * their last use.
 * @throws EnvironmentError `STORE_ERROR` when the file cannot be used.
 */
export function openSqliteStore(path: string, given: Partial<SqliteSessionStoreOptions> = {}): SessionStore {
  return new SqliteSessionStore(path, withDefaults(defaultOptions(given.maxBytes), given));
}

type SessionFile = SqliteFile<keyof (typeof SESSION_TABLES)['sql']>;

/** Opens the file. One of ours that is damaged or empty is set aside, and a new one begun. */
function openFile(path: string, { lockTimeoutMs, logger }: SqliteSessionStoreOptions): SessionFile {
  const open = () => new SqliteFile(path, SESSION_TABLES, { lockTimeoutMs, pragmas: PRAGMAS });
  // Only a file with marks is known to be ours: another one is never moved.
  const marked = AcknowledgedMarks.sessionsIn(path);
  let damage: string;
  const { size = 0 } = statSync(path, { throwIfNoEntry: false }) ?? {};
  if (marked > 0 && size === 0) damage = `is missing or empty, and held up to ${marked} sessions`;
  else
    try {
      return open();
    } catch (error) {
      if (marked === 0 || !isCorrupt(error)) throw error;
      damage = `cannot be read: ${reasonOf(error)}`;
    }
  const aside = setAside(path);
  logger.error({ path }, `${path} ${damage}. It is set aside as ${aside}, and a new file is begun`);
  return open();
}

/**
 * Checks a file of sessions, and changes nothing. Answers how many sessions it has, and what is wrong, as sentences.
 * @throws EnvironmentError `STORE_ERROR` when there is no such file
 */
export function checkSqliteStore(path: string) {
  const marked = AcknowledgedMarks.sessionsIn(path);
  if (!existsSync(path)) throw storeError(`There is no file ${path}.`);
  const problems: string[] = [];
  let sessions = 0;
  const database = new DatabaseSync(path, { readOnly: true });
  try {
    const { sql } = SESSION_TABLES;
    const format = formatOf(database, SESSION_TABLES);
    const faults = database.prepare('PRAGMA integrity_check(20)').all() as { integrity_check: string }[];
    for (const { integrity_check: fault } of faults) if (fault !== 'ok') problems.push(`SQLite: ${fault}.`);
    if (format === 0) problems.push(`There are no sessions in it; its marks tell of up to ${marked}.`);
    if (format === 1) problems.push('Its sessions have format 1, which this version reads no more.');
    // Format 2 is the first with the tables of the last one.
    if (format < 2) return { sessions, problems };
    const marks = marked > 0 ? new AcknowledgedMarks(`${path}-marks`) : undefined;
    const entriesOf = database.prepare(sql.readEntries);
    type Row = SessionRow & { readonly id: string };
    for (const row of database.prepare('SELECT * FROM session').iterate() as IterableIterator<unknown>) {
      const { id, key } = row as Row;
      const entries = entriesOf.all(key) as unknown as EntryRow[];
      const damage = damageOf(id, row as Row, entries, marks?.read(key, id));
      // An id is the key to its session.
      if (damage !== undefined) problems.push(`Session ${id.slice(0, 8)}... is damaged: ${damage}`);
      sessions++;
    }
    marks?.close();
  } catch (error) {
    problems.push(`It cannot be read: ${reasonOf(error)}.`);
  } finally {
    database.close();
  }
  return { sessions, problems };
}

class SqliteSessionStore implements SessionStore {
  readonly #path: string;
  readonly #owner = randomUUID();
  readonly #options: SqliteSessionStoreOptions;
  readonly #file: SessionFile;
  readonly #marks: AcknowledgedMarks;
  readonly #monitor: StoreMonitor;
  readonly #pageBytes: number;
  readonly #clockAtStart: number;
  readonly #startedAt = performance.now();
  readonly #upkeepTimer: NodeJS.Timeout;
  #entries: Entry[] = [];
  #flushing: Promise<void> | null = null;
  #upkeep: Promise<void> | null = null;
  /** Bytes that may be written before the size of the file is looked at. */
  #allowance = 0;
  /** Pages in the log since the last checkpoint, about. */
  #loggedPages = 0;
  #checkpointed: Promise<unknown> | undefined;
  #isClosed = false;

  constructor(path: string, options: SqliteSessionStoreOptions) {
    this.#path = path;
    this.#options = options;
    const { maxBytes, logger } = options;
    this.#monitor = new StoreMonitor(logger);
    let file: SessionFile | undefined;
    try {
      file = openFile(path, options);
      this.#file = file;
      this.#pageBytes = (this.#statements.pageSize.get() as { page_size: number }).page_size;
      file.database.exec(`PRAGMA max_page_count = ${Math.max(1, Math.floor(maxBytes / this.#pageBytes))}`);
      this.#clockAtStart = (this.#statements.readClock.get() as { ms: number }).ms;
      this.#marks = new AcknowledgedMarks(`${path}-marks`);
      if (this.#marks.isNew && (this.#statements.hasSessions.get() as { yes: number }).yes === 1) {
        logger.warn({ path: `${path}-marks` }, 'sessions that lost their last steps cannot be told');
      }
      this.#deleteUnused();
      // From here on waiting for a lock must not stop the event loop: transactions are tried again instead.
      file.database.exec('PRAGMA busy_timeout = 0');
    } catch (error) {
      if (file?.database.isOpen) file.database.close();
      throw storeError(`Could not open the sessions in ${path}: ${(error as Error).message}`, error);
    }
    this.#upkeepTimer = setInterval(() => this.#startUpkeep(), UPKEEP_INTERVAL_MS).unref();
    this.#startUpkeep();
  }

  get #statements() {
    return this.#file.statements;
  }

  /** Time for which the file has been served, ms. A wrong clock of the machine does not change it. */
  get #now(): number {
    return Math.round(this.#clockAtStart + performance.now() - this.#startedAt);
  }

  async take(id: string): Promise<StoredSession | undefined> {
    await this.#flushing;
    const { takeSession, readEntries } = this.#statements;
    const take = () => {
      const row = takeSession.get(this.#owner, this.#now, id) as SessionRow | undefined;
      return row && this.#restore(id, row, readEntries.all(row.key) as unknown as EntryRow[]);
    };
    return this.#file
      .retried(() => this.#file.transact(take))
      .catch((error: Error) => {
        const { message } = error;
        if (!isCorrupt(error)) throw sessionError('read', error);
        this.#monitor.damaged(id, message);
        throw openEnvError('SESSION_DAMAGED', { id, damage: `${message}.` }, { cause: error });
      });
  }

  remove(id: string): Promise<void> {
    return this.#retried('saved', () => void this.#statements.removeSession.run(id, this.#owner));
  }

  condition(): StoreCondition {
    let bytes: number | null = null;
    try {
      bytes = this.#isClosed ? null : this.#pages().pages * this.#pageBytes;
    } catch {
      // The size of a locked or damaged file is not known; `problem` says why.
    }
    return { ...this.#monitor.condition, bytes };
  }

  async close(): Promise<void> {
    clearInterval(this.#upkeepTimer);
    await this.#flushing;
    await this.#upkeep;
    await this.#checkpointed;
    if (this.#isClosed) return;
    this.#isClosed = true;
    try {
      this.#statements.saveClock.run(this.#now);
    } catch {
      // Another process may hold the lock. The clock loses a minute.
    }
    this.#file.database.close();
    this.#marks.close();
  }

  /** @param taken of a session that was taken over: its key, the number of the entry of its last reset, and its digest */
  open(
    id: string,
    environment: EnvironmentName,
    client = '',
    taken = { key: 0, number: 0, digest: '' },
  ): SessionJournal {
    const owner = this.#owner;
    const { saveReset, takeKey, clearEntries, saveEntry, saveUse } = this.#statements;
    const bytesOfMark = markOf(id);
    let { key, number } = taken;
    let usedAt = Number.NEGATIVE_INFINITY;
    let uncounted = 0;

    const mark = (entry: number): Mark => {
      setNumber(bytesOfMark, entry);
      return { key, bytes: bytesOfMark };
    };
    /** Notes from time to time that the session is used, and how long it has become. */
    const count = (): EnvironmentError | null => {
      const now = this.#now;
      if (now - usedAt <= USE_RESOLUTION_MS && uncounted < SIZE_RESOLUTION_BYTES) return null;
      const refusal = this.#refusal(client, uncounted, id);
      if (refusal) return refusal;
      saveUse.run(now, uncounted, key, id, owner);
      usedAt = now;
      uncounted = 0;
      return null;
    };
    const writer: EntryWriter = {
      reset: (episodeId, text, digest) => {
        const bytes = SESSION_BYTES + text.length;
        return this.#write(false, bytes, () => {
          const now = this.#now;
          const refusal = this.#refusal(client, bytes, id);
          if (refusal) return refusal;
          const { id: environmentId, version } = environment;
          const row = saveReset.get(id, environmentId, version, owner, client, episodeId, bytes, now);
          if (!row) return this.#lost(id);
          ({ key, number } = row as { key: number; number: number });
          usedAt = now;
          uncounted = 0;
          takeKey.run(key);
          clearEntries.run(key);
          saveEntry.run(RESET_STEP, text, digest, key, id, owner);
          return mark(number);
        });
      },
      step: (index, text, digest) => {
        const bytes = ENTRY_BYTES + text.length;
        uncounted += bytes;
        return this.#write(true, bytes, () => {
          const refusal = count();
          if (refusal) return refusal;
          const { changes } = saveEntry.run(index, text, digest, key, id, owner);
          return changes === 1 ? mark(number + index + 1) : this.#lost(id);
        });
      },
      isOwned: async () => {
        if (number === 0) return true;
        const row = await this.#retried('read', () => this.#statements.readOwner.get(id));
        return (row as { owner: string } | undefined)?.owner === owner;
      },
    };
    return chainedJournal(id, environment, writer, taken.digest);
  }

  #write(isOneStatement: boolean, bytes: number, write: () => Mark | Error): Promise<void> {
    this.#monitor.began();
    this.#allowance -= bytes;
    this.#loggedPages += ENTRY_PAGES + bytes / this.#pageBytes;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#entries.push({ isOneStatement, write, resolve, reject });
    this.#flushing ??= this.#writeWaiting();
    return promise;
  }

  /** Makes room for what a client wants to keep. Returns why it may not. */
  #refusal(client: string, bytes: number, sessionId: string): EnvironmentError | null {
    if (client === '') return null;
    const { readBytes, deleteOfClient } = this.#statements;
    const { maxClientBytes, restMs } = this.#options;
    for (let most = 1; ; most *= 2) {
      const kept = (readBytes.get(client) as { bytes: number } | undefined)?.bytes ?? 0;
      if (kept + bytes <= maxClientBytes) return null;
      if (deleteOfClient.run(client, this.#now - restMs, sessionId, most).changes === 0) {
        return openEnvError('STORE_QUOTA', { bytes: maxClientBytes });
      }
    }
  }

  /** Why an entry of a session found no session to belong to. */
  #lost(id: string): Error {
    const row = this.#statements.readOwner.get(id);
    return openEnvError(row === undefined ? 'SESSION_DELETED' : 'SESSION_TAKEN', { id });
  }

  #restore(id: string, row: SessionRow, entries: readonly EntryRow[]): StoredSession {
    const { key, number, client, episode_id: episodeId, version } = row;
    const environment = { id: row.environment, version };
    const damage = damageOf(id, row, entries, this.#marks.read(key, id));
    if (damage !== undefined) this.#monitor.damaged(id, damage);
    const digest = entries.at(-1)?.digest ?? '';
    const journal = this.open(id, environment, client, { key, number, digest });
    const texts = entries.map(({ text }) => text);
    return storedSession({ environment, client, episodeId }, texts, damage, journal);
  }

  /** Writes the entries of this turn of the event loop, and those that come while another process holds the lock. */
  async #writeWaiting(): Promise<void> {
    await nextTurn();
    while (this.#entries.length > 0) await this.#settle(this.#entries.splice(0));
    // In the same breath as the last look at the entries, so that none can slip in between and wait for ever.
    this.#flushing = null;
  }

  async #settle(entries: readonly Entry[]): Promise<void> {
    const write = () => entries.map((entry) => entry.write());
    const isOneStatement = entries.length === 1 && entries[0].isOneStatement;
    let outcomes: (Mark | Error)[];
    try {
      outcomes = await this.#file.retried(() => (isOneStatement ? write() : this.#file.transact(write)));
    } catch (error) {
      if (entries.length > 1 && !isBusy(error)) {
        // One that fails takes no other with it.
        for (const entry of entries) await this.#settle([entry]);
        return;
      }
      const failure = sessionError('saved', error);
      this.#monitor.failed(entries.length, reasonOf(error));
      for (const entry of entries) entry.reject(failure);
      if (primaryCode(error) === SQLITE_FULL) this.#startUpkeep();
      return;
    }
    this.#acknowledge(entries, outcomes);
    if (this.#allowance < 0) this.#startUpkeep();
    if (this.#loggedPages > CHECKPOINT_PAGES) this.#checkpoint();
  }

  #checkpoint(): void {
    this.#loggedPages = 0;
    // One that fails is made by the event loop later.
    this.#checkpointed = thread.do({ kind: 'checkpoint', path: this.#path }).catch(() => {});
  }

  #acknowledge(entries: readonly Entry[], outcomes: readonly (Mark | Error)[]): void {
    const marks = outcomes.filter((outcome): outcome is Mark => !(outcome instanceof Error));
    try {
      this.#marks.write(marks);
    } catch (error) {
      this.#options.logger.error({ err: error }, 'marks of sessions cannot be written');
    }
    if (marks.length > 0) this.#monitor.written(marks.length);
    this.#monitor.refused(entries.length - marks.length);
    for (const [index, entry] of entries.entries()) {
      const outcome = outcomes[index];
      if (errorCode(outcome) === 'STORE_QUOTA') this.#monitor.overQuota();
      if (outcome instanceof Error) entry.reject(outcome);
      else entry.resolve();
    }
  }

  #retried<T>(done: 'read' | 'saved', run: () => T): Promise<T> {
    return this.#file.retried(run).catch((error) => {
      throw sessionError(done, error);
    });
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
    await this.#file.retried(() => this.#statements.saveClock.run(this.#now));
    while (await this.#pruned(() => this.#deleteUnused())) await nextTurn();
    const { maxBytes } = this.#options;
    const used = () => (this.#pages().pages - this.#pages().free) * this.#pageBytes;
    if (used() > PRUNE_FROM * maxBytes) {
      const isTooMuch = () => used() > PRUNE_TO * maxBytes;
      while (isTooMuch() && (await this.#pruned(() => this.#deleteOfLargestClient()))) await nextTurn();
    }
    this.#allowance = Math.max(0.02 * maxBytes, PRUNE_FROM * maxBytes - used());
    while (!this.#isClosed && this.#pages().free * this.#pageBytes > SLACK_BYTES) {
      const { free: before } = this.#pages();
      const vacuum = `PRAGMA incremental_vacuum(${VACUUM_PAGES})`;
      await this.#file.retried(() => this.#file.database.exec(vacuum));
      // A file that was made without `auto_vacuum` keeps its size, and uses the room again.
      if (this.#pages().free >= before) break;
      await nextTurn();
    }
  }

  async #pruned(prune: () => number): Promise<boolean> {
    if (this.#isClosed) return false;
    return (await this.#file.retried(() => this.#file.transact(prune))) > 0;
  }

  #deleteUnused(): number {
    return Number(this.#statements.deleteUnused.run(this.#now - this.#options.retentionMs).changes);
  }

  #deleteOfLargestClient(): number {
    const before = this.#now - this.#options.restMs;
    const client = this.#statements.largestClient.get(before) as { id: string } | undefined;
    if (client === undefined) return 0;
    return Number(this.#statements.deleteOfClient.run(client.id, before, '', PRUNED_AT_ONCE).changes);
  }

  #pages() {
    return this.#statements.pages.get() as { readonly pages: number; readonly free: number };
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
    const name = step === RESET_STEP ? 'its reset' : `step ${step}`;
    if (entry.step !== step) return `${name} is missing.`;
    const environment = { id: row.environment, version: row.version };
    digest =
      index > 0 ? stepDigest(digest, entry.text) : resetDigest(id, environment, row.episode_id, entry.text);
    if (digest !== entry.digest) return `${name} was changed.`;
  }
  if (entries.length === 0) return 'its reset is missing.';
  const missing = acknowledged === undefined ? 0 : acknowledged - (row.number + entries.length - 1);
  return missing > 0 ? `its last ${missing} entries are missing.` : undefined;
}

function sessionError(done: 'read' | 'saved', error: unknown): EnvironmentError {
  return storeError(`The session could not be ${done}: ${reasonOf(error)}.`, error);
}
