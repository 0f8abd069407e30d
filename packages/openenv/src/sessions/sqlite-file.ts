import { existsSync, renameSync } from 'node:fs';
import { DatabaseSync, type StatementSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';

const SQLITE_BUSY = 5;
const SQLITE_CORRUPT = 11;
export const SQLITE_FULL = 13;
const SQLITE_NOT_A_DATABASE = 26;
const LOCK_RETRY_MS = 5;
export const LOCK_TIMEOUT_MS = 5000;

/** SQLite's code of an error, without the details in its higher bytes; 0 for other errors. */
export function primaryCode(error: unknown): number {
  return ((error as { errcode?: number }).errcode ?? 0) & 0xff;
}

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
    case SQLITE_CORRUPT:
    case SQLITE_NOT_A_DATABASE:
      return `the file is damaged, or no SQLite file (${(error as Error).message})`;
    default:
      return (error as Error).message;
  }
}

/** Tables that are kept in a file, maybe beside others, and how files of former formats come to have them. */
export interface StoredTables<Name extends string> {
  /** What the tables hold, in errors: `sessions`. */
  readonly part: string;
  /** Makes the tables of the last format, where they are missing. */
  readonly schema: string;
  /** Statements that take format 1 to 2, and so on, or why a file of that format is refused. The last format is one more. */
  readonly steps: readonly (string | { readonly refusal: string })[];
  /** Query for the `format` of files that note none: 0 where they do not have the tables. */
  readonly formerFormat: string;
  /** Statements by their names. */
  readonly sql: Readonly<Record<Name, string>>;
}

interface SqliteFileOptions {
  /** Longest wait for a file that another process has locked, ms. Default 5 s. */
  readonly lockTimeoutMs?: number;
  /** Statements before the file gets its tables. */
  readonly pragmas?: string;
  /** Refuse a file without the tables, and leave it as it is. Default false. */
  readonly mustHaveTables?: boolean;
}

type Tables = Omit<StoredTables<string>, 'sql'>;

const FORMAT_TABLE =
  'CREATE TABLE IF NOT EXISTS store_format (part TEXT PRIMARY KEY, format INTEGER NOT NULL) STRICT';

/** Format of the tables in a file, 0 where it has none. @throws Error for one that this version does not know */
export function formatOf(database: DatabaseSync, { part, steps, formerFormat }: Tables): number {
  const isNoted =
    database.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'store_format'").get() !== undefined;
  const noted = isNoted && database.prepare('SELECT format FROM store_format WHERE part = ?').get(part);
  const { format } = (noted || database.prepare(formerFormat).get()) as { format: number };
  const last = steps.length + 1;
  if (format <= last) return format;
  const problem = `its ${part} have format ${format}, this version reads formats up to ${last}. Use the version of servegym that wrote it`;
  throw new Error(problem);
}

/** Makes the tables of the last format, with what the file has in a former one. */
function makeTables(database: DatabaseSync, tables: Tables): void {
  const { part, schema, steps } = tables;
  database.exec('BEGIN IMMEDIATE');
  const format = formatOf(database, tables);
  if (format > 0) {
    for (const step of steps.slice(format - 1)) {
      if (typeof step !== 'string') throw new Error(step.refusal);
      database.exec(step);
    }
  }
  database.exec(`${schema}; ${FORMAT_TABLE}`);
  database.prepare('INSERT OR REPLACE INTO store_format VALUES (?, ?)').run(part, steps.length + 1);
  database.exec('COMMIT');
}

/** Ends of the names of a database and of what stands beside it. */
const FILE_ENDS = ['', '-wal', '-shm', '-marks'];

/** Gives a damaged database another name, with what stands beside it. Answers the name. */
export function setAside(path: string): string {
  let number = 1;
  while (FILE_ENDS.some((end) => existsSync(`${path}.damaged-${number}${end}`))) number++;
  const aside = `${path}.damaged-${number}`;
  for (const end of FILE_ENDS) if (existsSync(path + end)) renameSync(path + end, aside + end);
  return aside;
}

/** A SQLite file that processes may share, with its statements. Writes are safe against `kill -9` of the process. */
export class SqliteFile<Name extends string> {
  readonly database: DatabaseSync;
  readonly statements: Readonly<Record<Name, StatementSync>>;
  readonly #lockTimeoutMs: number;

  /** @param path a file, or `:memory:` @throws the database's error when it cannot be opened */
  constructor(path: string, tables: StoredTables<Name>, options: SqliteFileOptions = {}) {
    const { lockTimeoutMs = LOCK_TIMEOUT_MS, pragmas = '', mustHaveTables = false } = options;
    this.#lockTimeoutMs = lockTimeoutMs;
    const database = new DatabaseSync(path, { timeout: lockTimeoutMs });
    try {
      if (mustHaveTables && formatOf(database, tables) === 0)
        throw new Error(`there is no ${tables.part} in it`);
      database.exec(`${pragmas} PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL`);
      makeTables(database, tables);
      const prepared = Object.entries<string>(tables.sql).map(([name, text]) => [
        name,
        database.prepare(text),
      ]);
      this.statements = Object.fromEntries(prepared);
    } catch (error) {
      database.close();
      throw error;
    }
    this.database = database;
  }

  transact<T>(transaction: () => T): T {
    this.database.exec('BEGIN IMMEDIATE');
    try {
      const value = transaction();
      this.database.exec('COMMIT');
      return value;
    } catch (error) {
      if (this.database.isTransaction) this.database.exec('ROLLBACK');
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
}
