/**
 * The engine counts time in whole ticks of 1/64 ns, so that the duration of k iterations, added up one by one or
 * taken from the closed form, is the same number to the last bit. Doubles hold ticks exactly for 39 hours;
 * `Engine.shiftClock` moves the origin before that.
 */
export const TICKS_PER_NS = 64;
/** Ticks of a microsecond. */
export const TICKS_PER_US = TICKS_PER_NS * 1e3;
/** Ticks of a ms. */
export const TICKS_PER_MS = TICKS_PER_NS * 1e6;
/** Ticks of a second. */
export const TICKS_PER_S = TICKS_PER_NS * 1e9;

/** The tick of what has not happened yet: it compares as earlier than any other and stays what it is when the clock shifts. */
export const NOT_YET = Number.NEGATIVE_INFINITY;

/** The tick nearest to a time in ms. */
export function ticksFromMs(ms: number): number {
  const ticks = ms * TICKS_PER_MS;
  return ticks < 2 ** 51 ? wholeTicks(ticks) : Math.round(ticks);
}

/** A time or duration in ms. */
export function msFromTicks(ticks: number): number {
  return ticks / TICKS_PER_MS;
}

/**
 * The whole tick nearest to a duration below 2^52 ticks. `Math.round` but for its branch, which is mispredicted every
 * other time and then costs ten times as much.
 */
export function wholeTicks(ticks: number): number {
  return Math.floor(ticks + 0.5);
}
