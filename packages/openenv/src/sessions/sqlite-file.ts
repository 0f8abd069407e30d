import { DatabaseSync, type StatementSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';

const SQLITE_BUSY = 5;
const SQLITE_CORRUPT = 11;
export const SQLITE_FULL = 13;
const SQLITE_NOT_A_DATABASE = 26;
export const LOCK_RETRY_MS = 5;
export const LOCK_TIMEOUT_MS = 5000;

/** SQLite's code of an error, without the details in its higher bytes; 0 for other errors. */
export function primaryCode(error: unknown): number {
  return ((error as { errcode?: number }).errcode ?? 0) & 0xff;
}

/** True when another process holds the lock. */
export function isBusy(error: unknown): boolean {
  return primaryCode(error) === SQLITE_BUSY;
}

export function isCorrupt(error: unknown): boolean {
  return [SQLITE_CORRUPT, SQLITE_NOT_A_DATABASE].includes(primaryCode(error));
}

/** Why the database refused, and what to do. */
export function reasonOf(error: unknown): string {
  switch (primaryCode(error)) {
    case SQLITE_FULL:
      return 'the disk is full, or the file has reached its limit. Make room';
    case SQLITE_BUSY:
      return 'another process holds the database locked. End it, or try again';
    default:
      return (error as Error).message;
  }
}

export interface SqliteFileOptions<Name extends string> {
  /** Longest wait for a file that another process has locked, ms. Default 5 s. */
  readonly lockTimeoutMs?: number;
  /** Statements before the file gets its tables. */
  readonly pragmas?: string;
  /** Makes the tables, where they are missing. */
  readonly setUp: (database: DatabaseSync) => void;
  /** Statements by their names. */
  readonly sql: Readonly<Record<Name, string>>;
  /** Single statements wait for a lock, and stop the event loop meanwhile. Default false: use `retried`. */
  readonly isBlocking?: boolean;
}

/** A SQLite file that processes may share, with its statements. Writes are safe against `kill -9` of the process. */
export class SqliteFile<Name extends string> {
  readonly database: DatabaseSync;
  readonly statements: Readonly<Record<Name, StatementSync>>;
  readonly #lockTimeoutMs: number;
  readonly #begin: StatementSync;
  readonly #commit: StatementSync;
  readonly #rollback: StatementSync;

  /** @param path a file, or `:memory:` @throws the database's error when it cannot be opened */
  constructor(path: string, options: SqliteFileOptions<Name>) {
    const { lockTimeoutMs = LOCK_TIMEOUT_MS, pragmas = '', setUp, sql, isBlocking = false } = options;
    this.#lockTimeoutMs = lockTimeoutMs;
    const database = new DatabaseSync(path, { timeout: lockTimeoutMs });
    try {
      database.exec(`${pragmas} PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL`);
      setUp(database);
      const prepared = Object.entries<string>(sql).map(([name, text]) => [name, database.prepare(text)]);
      this.statements = Object.fromEntries(prepared);
      this.#begin = database.prepare('BEGIN IMMEDIATE');
      this.#commit = database.prepare('COMMIT');
      this.#rollback = database.prepare('ROLLBACK');
      // Waiting for a lock must not stop the event loop: transactions are tried again instead.
      if (!isBlocking) database.exec('PRAGMA busy_timeout = 0');
    } catch (error) {
      database.close();
      throw error;
    }
    this.database = database;
  }

  transact<T>(transaction: () => T): T {
    this.#begin.run();
    try {
      const value = transaction();
      this.#commit.run();
      return value;
    } catch (error) {
      if (this.database.isTransaction) this.#rollback.run();
      throw error;
    }
  }

  /** Tries again while another process holds the lock, without stopping the event loop. @throws what the last try threw */
  async retried<T>(run: () => T): Promise<T> {
    const deadline = performance.now() + this.#lockTimeoutMs;
    for (;;) {
      try {
        return run();
      } catch (error) {
        if (!isBusy(error) || performance.now() > deadline) throw error;
      }
      await sleep(LOCK_RETRY_MS);
    }
  }

  close(): void {
    this.database.close();
  }
}
