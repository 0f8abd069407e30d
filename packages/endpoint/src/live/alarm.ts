/** Calls back at a moment of wall time. One moment at a time: setting another takes the place of the one before. */
export interface Alarm {
  /** `wallMs` on the scale of `performance.now()`; one that has passed rings as soon as the event loop turns. */
  set(wallMs: number): void;
  clear(): void;
}

/** A timer of Node fires up to this late, ms; the rest of the wait is spent turning the event loop. */
const TIMER_SLACK_MS = 1.5;

/**
 * An alarm that is precise to some hundredths of a millisecond on a machine with time to spare: a timer for most of
 * the wait, then turns of the event loop, which also serve what comes in. Costs CPU for the last 1 to 2 ms of each wait.
 */
export class PreciseAlarm implements Alarm {
  readonly #ring: () => void;
  #dueMs = 0;
  #timer: NodeJS.Timeout | undefined;
  #turn: NodeJS.Immediate | undefined;

  constructor(ring: () => void) {
    this.#ring = ring;
  }

  set(wallMs: number): void {
    this.clear();
    this.#dueMs = wallMs;
    const wait = wallMs - performance.now() - TIMER_SLACK_MS;
    if (wait >= 1) this.#timer = setTimeout(() => this.#approach(), Math.floor(wait));
    else this.#approach();
  }

  clear(): void {
    clearTimeout(this.#timer);
    clearImmediate(this.#turn);
  }

  #approach(): void {
    this.#turn = setImmediate(() => {
      if (performance.now() >= this.#dueMs) this.#ring();
      else this.#approach();
    });
  }
}
