import { hash } from 'node:crypto';
import { closeSync, constants, fstatSync, openSync, readSync, writeSync } from 'node:fs';

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

/** Puts the number of an entry into a mark. */
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

  /** @throws when the file cannot be opened */
  constructor(path: string) {
    this.#file = openSync(path, constants.O_RDWR | constants.O_CREAT, 0o600);
    this.isNew = fstatSync(this.#file).size === 0;
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
