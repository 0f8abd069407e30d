import { hash, randomBytes } from 'node:crypto';

/** Bytes of an id, in order: random ones, the second at which it was made, and a check of all before. */
const SECOND_AT = 10;
const CHECK_AT = 14;

/**
 * A new session id: a UUID of version 8 with 74 random bits, which make it the key to its session. Any server can tell by
 * `madeAt` an id whose session is gone from one that never was, and nobody has to keep a note of it.
 */
export function newSessionId(): string {
  const bytes = randomBytes(16);
  bytes[6] = (bytes[6] & 0x0f) | 0x80;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  bytes.writeUInt32BE(Math.floor(Date.now() / 1000), SECOND_AT);
  bytes.write(checkOf(bytes), CHECK_AT, 'hex');
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}

/** When `newSessionId` made an id, by the clock of that machine; `undefined` when it did not. */
export function madeAt(id: string): Date | undefined {
  if (!/^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/.test(id)) return undefined;
  const bytes = Buffer.from(id.replaceAll('-', ''), 'hex');
  const isOurs = bytes.toString('hex', CHECK_AT) === checkOf(bytes);
  return isOurs ? new Date(bytes.readUInt32BE(SECOND_AT) * 1000) : undefined;
}

function checkOf(bytes: Buffer): string {
  return hash('sha256', bytes.subarray(0, CHECK_AT)).slice(0, 4);
}
