import { hostname } from 'node:os';
import type { DatabaseSync } from 'node:sqlite';

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

  constructor(database: DatabaseSync, owner: string, program = process.argv[1] ?? '') {
    this.#database = database;
    this.#owner = owner;
    database.exec(
      `CREATE TABLE IF NOT EXISTS server (
         owner TEXT PRIMARY KEY, process INTEGER NOT NULL, host TEXT NOT NULL, program TEXT NOT NULL, is_open INTEGER NOT NULL
       ) STRICT`,
    );
    const rows = database.prepare('SELECT * FROM server ORDER BY rowid').all() as unknown as (StoreUser & {
      owner: string;
      is_open: number;
    })[];
    const last = rows.at(-1)?.program ?? program;
    this.lastProgram = last === program ? null : last;
    this.others = rows.filter((row) => row.is_open === 1 && isRunning(row));
    const others = new Set<unknown>(this.others);
    for (const row of rows) {
      if (!others.has(row)) database.prepare('DELETE FROM server WHERE owner = ?').run(row.owner);
    }
    database
      .prepare('INSERT INTO server (owner, process, host, program, is_open) VALUES (?, ?, ?, ?, 1)')
      .run(owner, process.pid, hostname(), program);
  }

  close(): void {
    this.#database.prepare('UPDATE server SET is_open = 0 WHERE owner = ?').run(this.#owner);
  }
}

/** A server of another machine, as of another container, is taken to run until it says that it has stopped. */
function isRunning({ process: id, host }: StoreUser): boolean {
  if (host !== hostname()) return true;
  if (id === process.pid) return false;
  try {
    process.kill(id, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
