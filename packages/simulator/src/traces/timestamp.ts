/**
 * A moment, split so that a difference keeps the full precision of the text: `dayMs` is a whole number, and a double
 * that holds the ms of one day resolves 0.00002 us.
 */
export interface Timestamp {
  /** Midnight, ms since 1970-01-01 UTC; 0 for a plain number. */
  readonly dayMs: number;
  /** ms since `dayMs`. */
  readonly ms: number;
  /** Whether a date and time said in which time zone it is; absent for a plain number. */
  readonly isZoned?: boolean;
}

const DATE_TIME =
  /^(\d{4})-(\d{2})-(\d{2})[ T](\d{2}):(\d{2}):(\d{2}(?:\.\d+)?) ?(?:(Z|UTC)|([+-])(\d{2}):?(\d{2}))?$/;

/**
 * Reads `2023-11-16 18:15:46.6805900`, with a space or a `T`, any number of decimals, and `Z`, `+02:00` or nothing
 * (which is UTC) at the end. `null` when it is something else or no real date.
 */
export function parseDateTime(text: string): Timestamp | null {
  const match = DATE_TIME.exec(text);
  if (match === null) return null;
  const [, year, month, day, hours, minutes, seconds, utc, sign, offsetHours, offsetMinutes] = match;
  const dayMs = Date.UTC(Number(year), Number(month) - 1, Number(day));
  const date = new Date(dayMs);
  if (date.getUTCMonth() !== Number(month) - 1 || date.getUTCDate() !== Number(day)) return null;
  if (Number(hours) > 23 || Number(minutes) > 59 || Number(seconds) >= 60) return null;
  let minuteOfDay = Number(hours) * 60 + Number(minutes);
  if (sign !== undefined) {
    if (Number(offsetHours) > 23 || Number(offsetMinutes) > 59) return null;
    const offset = Number(offsetHours) * 60 + Number(offsetMinutes);
    minuteOfDay += sign === '+' ? -offset : offset;
  }
  const isZoned = utc !== undefined || sign !== undefined;
  return { dayMs, ms: minuteOfDay * 60_000 + Number(seconds) * 1000, isZoned };
}
