import { hash } from 'node:crypto';
import { closeSync, constants, fstatSync, openSync, readSync, statSync, writeSync } from 'node:fs';
import type { StoredTables } from './sqlite-file.ts';

/** In the place of a step, for the reset, which is the first entry of a journal. */
export const RESET_STEP = -1;

/**
 * Keys of deleted sessions are used again, so that the marks beside the database stay few. `number` counts the entries
 * that were ever written for a session before its reset; `used_at` and `clock` are in ms of serving.
 */
const SCHEMA = `
CREATE TABLE IF NOT EXISTS session (
  key INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  environment TEXT NOT NULL,
  version TEXT NOT NULL,
  owner TEXT NOT NULL,
  client TEXT NOT NULL,
  episode_id TEXT NOT NULL,
  number INTEGER NOT NULL,
  bytes INTEGER NOT NULL,
  used_at INTEGER NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS session_used_at ON session (used_at);
CREATE INDEX IF NOT EXISTS session_client ON session (client, used_at);
CREATE TABLE IF NOT EXISTS entry (
  session INTEGER NOT NULL,
  step INTEGER NOT NULL,
  text TEXT NOT NULL,
  digest TEXT NOT NULL,
  PRIMARY KEY (session, step)
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS free_key (key INTEGER PRIMARY KEY) STRICT;
CREATE TABLE IF NOT EXISTS client (id TEXT PRIMARY KEY, bytes INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS client_bytes ON client (bytes);
CREATE TABLE IF NOT EXISTS clock (one INTEGER PRIMARY KEY CHECK (one = 1), ms INTEGER NOT NULL) STRICT;
INSERT INTO clock (one, ms) VALUES (1, 0) ON CONFLICT DO NOTHING;
CREATE TRIGGER IF NOT EXISTS session_added AFTER INSERT ON session BEGIN
  INSERT INTO client (id, bytes) VALUES (new.client, new.bytes)
    ON CONFLICT DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER IF NOT EXISTS session_resized AFTER UPDATE OF bytes ON session BEGIN
  UPDATE client SET bytes = bytes + new.bytes - old.bytes WHERE id = new.client;
END;
CREATE TRIGGER IF NOT EXISTS session_deleted AFTER DELETE ON session BEGIN
  DELETE FROM entry WHERE session = old.key;
  INSERT INTO free_key (key) VALUES (old.key);
  UPDATE client SET bytes = bytes - old.bytes WHERE id = old.client;
  DELETE FROM client WHERE id = old.client AND bytes <= 0;
END;
PRAGMA user_version = 3;
`;

export interface SessionRow {
  readonly key: number;
  readonly environment: string;
  readonly version: string;
  readonly client: string;
  readonly episode_id: string;
  readonly number: number;
}

export interface EntryRow {
  readonly step: number;
  readonly text: string;
  readonly digest: string;
}

const SESSION_SQL = {
  saveReset: `INSERT INTO session (key, id, environment, version, owner, client, episode_id, number, bytes, used_at)
       VALUES (
         coalesce((SELECT min(key) FROM free_key), (SELECT coalesce(max(key), 0) + 1 FROM session)),
         ?, ?, ?, ?, ?, ?, 1, ?, ?
       )
       ON CONFLICT (id) DO UPDATE SET environment = excluded.environment, version = excluded.version,
         episode_id = excluded.episode_id, bytes = excluded.bytes, used_at = excluded.used_at,
         number = number + 1 + coalesce((SELECT max(step) + 1 FROM entry WHERE session = key), 0)
       WHERE owner = excluded.owner
       RETURNING key, number, client`,
  takeKey: 'DELETE FROM free_key WHERE key = ?',
  clearEntries: 'DELETE FROM entry WHERE session = ?',
  saveEntry: `INSERT INTO entry (step, text, digest, session)
       SELECT ?, ?, ?, key FROM session WHERE key = ? AND id = ? AND owner = ?`,
  saveUse: 'UPDATE session SET used_at = ?, bytes = bytes + ? WHERE key = ? AND id = ? AND owner = ?',
  takeSession: `UPDATE session SET owner = ?, used_at = ? WHERE id = ?
       RETURNING key, environment, version, client, episode_id, number`,
  readEntries: 'SELECT step, text, digest FROM entry WHERE session = ? ORDER BY step',
  readOwner: 'SELECT owner FROM session WHERE id = ?',
  removeSession: 'DELETE FROM session WHERE id = ? AND owner = ?',
  readBytes: 'SELECT bytes FROM client WHERE id = ?',
  deleteOfClient: `DELETE FROM session WHERE key IN
         (SELECT key FROM session WHERE client = ? AND used_at < ? AND id <> ? ORDER BY used_at LIMIT ?)`,
  deleteUnused:
    'DELETE FROM session WHERE key IN (SELECT key FROM session WHERE used_at < ? ORDER BY used_at LIMIT 20)',
  largestClient: `SELECT id FROM client
       WHERE EXISTS (SELECT 1 FROM session WHERE session.client = client.id AND used_at < ?)
       ORDER BY bytes DESC LIMIT 1`,
  readClock: 'SELECT ms FROM clock',
  saveClock: 'UPDATE clock SET ms = max(ms, ?)',
  pages: 'SELECT page_count AS pages, freelist_count AS free FROM pragma_page_count, pragma_freelist_count',
  pageSize: 'SELECT page_size FROM pragma_page_size',
  hasSessions: 'SELECT EXISTS (SELECT 1 FROM session) AS yes',
};

export const SESSION_TABLES: StoredTables<keyof typeof SESSION_SQL> = {
  part: 'sessions',
  schema: SCHEMA,
  // No version with format 1 was published. Format 3 compresses long resets, and is else as format 2.
  steps: [
    { refusal: 'its sessions have format 1, which this version reads no more. Choose another file' },
    '',
  ],
  formerFormat: 'SELECT user_version AS format FROM pragma_user_version',
  sql: SESSION_SQL,
};

/** Bytes of a mark: ten of the digest of the session's id, six of a number. */
const MARK_BYTES = 16;
const NUMBER_BYTES = 6;
const NUMBER_AT = MARK_BYTES - NUMBER_BYTES;

/** A mark that is to be written. */
export interface Mark {
  /** Key of the session. */
  readonly key: number;
  /** A mark of `markOf`, with the number in it. */
  readonly bytes: Buffer;
}

/** An empty mark of a session. */
export function markOf(sessionId: string): Buffer {
  const mark = Buffer.alloc(MARK_BYTES);
  hash('sha256', sessionId, 'buffer').copy(mark, 0, 0, NUMBER_AT);
  return mark;
}

export function setNumber(mark: Buffer, number: number): void {
  mark.writeUIntBE(number, NUMBER_AT, NUMBER_BYTES);
}

/**
 * A file beside the database that has the number of the last acknowledged entry of each session. SQLite cannot tell a
 * log that was cut, or a file that was put back, from one in which no more was ever written; this file can.
 */
export class AcknowledgedMarks {
  readonly #file: number;
  /** True when the file had no marks as it was opened. */
  readonly isNew: boolean;

  constructor(path: string) {
    this.#file = openSync(path, constants.O_RDWR | constants.O_CREAT, 0o600);
    this.isNew = fstatSync(this.#file).size === 0;
  }

  /** Most sessions that the marks beside a database can tell of; 0 without marks. */
  static sessionsIn(path: string): number {
    const { size = 0 } = statSync(`${path}-marks`, { throwIfNoEntry: false }) ?? {};
    return Math.max(0, Math.floor(size / MARK_BYTES) - 1);
  }

  /** Number of the last acknowledged entry of a session; `undefined` when the file has none. */
  read(key: number, sessionId: string): number | undefined {
    const bytes = Buffer.alloc(MARK_BYTES);
    if (readSync(this.#file, bytes, 0, MARK_BYTES, key * MARK_BYTES) < MARK_BYTES) return undefined;
    const isOwn = bytes.compare(markOf(sessionId), 0, NUMBER_AT, 0, NUMBER_AT) === 0;
    return isOwn ? bytes.readUIntBE(NUMBER_AT, NUMBER_BYTES) : undefined;
  }

  /** Writes marks; those of neighbouring keys at once. */
  write(marks: readonly Mark[]): void {
    const ordered = marks.length > 1 ? marks.toSorted((a, b) => a.key - b.key) : marks;
    for (let start = 0; start < ordered.length; ) {
      let end = start + 1;
      while (end < ordered.length && ordered[end].key === ordered[end - 1].key + 1) end++;
      const run = ordered.slice(start, end).map(({ bytes }) => bytes);
      const bytes = run.length === 1 ? run[0] : Buffer.concat(run);
      writeSync(this.#file, bytes, 0, bytes.length, ordered[start].key * MARK_BYTES);
      start = end;
    }
  }

  close(): void {
    closeSync(this.#file);
  }
}
