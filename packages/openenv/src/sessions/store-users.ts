import { hostname } from 'node:os';
import type { DatabaseSync } from 'node:sqlite';

/** Servers note every minute of serving that they run, ms. */
const SEEN_MS = 180_000;

/** A server that keeps its sessions in the same file. */
export interface StoreUser {
  readonly process: number;
  readonly host: string;
  /** Path of its program. */
  readonly program: string;
}

/** Notes in a file which servers use it. */
export class StoreUsers {
  /** Other servers that had the file open when this one opened it. */
  readonly others: readonly StoreUser[];
  /** Program of the last server, when it is another one. */
  readonly lastProgram: string | null;
  readonly #database: DatabaseSync;
  readonly #owner: string;

  /** @param now Time for which the file has been served, ms. */
  constructor(database: DatabaseSync, owner: string, now: number, program = process.argv[1] ?? '') {
    this.#database = database;
    this.#owner = owner;
    database.exec(
      `CREATE TABLE IF NOT EXISTS store_user (
         owner TEXT PRIMARY KEY, process INTEGER NOT NULL, host TEXT NOT NULL, program TEXT NOT NULL,
         seen_at INTEGER NOT NULL, is_open INTEGER NOT NULL
       ) STRICT`,
    );
    const rows = database
      .prepare('SELECT * FROM store_user ORDER BY rowid')
      .all() as unknown as (StoreUser & {
      owner: string;
      is_open: number;
      seen_at: number;
    })[];
    const last = rows.at(-1)?.program ?? program;
    this.lastProgram = last === program ? null : last;
    this.others = rows.filter((row) => row.is_open === 1 && isRunning(row, now - row.seen_at));
    const others = new Set<unknown>(this.others);
    for (const row of rows) {
      if (!others.has(row)) database.prepare('DELETE FROM store_user WHERE owner = ?').run(row.owner);
    }
    database
      .prepare(
        'INSERT INTO store_user (owner, process, host, program, seen_at, is_open) VALUES (?, ?, ?, ?, ?, 1)',
      )
      .run(owner, process.pid, hostname(), program, now);
  }

  /** Notes that this server still runs. */
  seen(now: number): void {
    this.#database.prepare('UPDATE store_user SET seen_at = ? WHERE owner = ?').run(now, this.#owner);
  }

  close(): void {
    this.#database.prepare('UPDATE store_user SET is_open = 0 WHERE owner = ?').run(this.#owner);
  }
}

/** A server of another machine, as of another container, is taken to run while it was seen lately. */
function isRunning({ process: id, host }: StoreUser, unseenMs: number): boolean {
  if (host !== hostname()) return unseenMs < SEEN_MS;
  if (id === process.pid) return false;
  try {
    process.kill(id, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
