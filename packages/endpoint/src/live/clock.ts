import { TICKS_PER_MS } from '@servegym/simulator';

/**
 * Ties the ticks of a simulated engine to wall time. A moment is always computed from the origin, never from the moment
 * before, so that lateness does not add up.
 */
export class SimulatedClock {
  /** Simulated time that passes while one second of wall time does. */
  readonly timeScale: number;
  /** Wall time, ms, monotonic. */
  readonly wallMs: () => number;
  readonly #originWallMs: number;
  #originTick = 0;

  constructor({ timeScale, wallMs = () => performance.now() }: { timeScale: number; wallMs?: () => number }) {
    this.timeScale = timeScale;
    this.wallMs = wallMs;
    this.#originWallMs = wallMs();
  }

  now(): number {
    return this.tickAt(this.wallMs());
  }

  tickAt(wallMs: number): number {
    return this.#originTick + Math.floor((wallMs - this.#originWallMs) * this.timeScale * TICKS_PER_MS);
  }

  wallMsAt(tick: number): number {
    return this.#originWallMs + (tick - this.#originTick) / TICKS_PER_MS / this.timeScale;
  }

  /** Moves the origin of the ticks: every tick is smaller by `ticks` from now on. */
  shift(ticks: number): void {
    this.#originTick -= ticks;
  }
}

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

/** Iterations with tokens over which lateness is averaged. */
const BLOCK = 500;
/** Largest mean lateness, ms of simulated time. */
const ALLOWED_MS = 10;

/** A time scale that is too fast for the machine. */
export interface LateFinding {
  /** Mean lateness, ms of simulated time. */
  readonly lateMs: number;
  readonly allowedMs: number;
  /** Time scale at which the same lateness in wall time would be allowed. */
  readonly fittingScale: number;
}

/** Watches how late tokens are handed out, and tells once when that distorts the latencies that clients measure. */
export class LatenessWatch {
  readonly #timeScale: number;
  readonly #tell: (finding: LateFinding) => void;
  #count = 0;
  #sumMs = 0;
  /** The first block pays for compilation. */
  #isWarm = false;
  #hasTold = false;

  constructor(timeScale: number, tell: (finding: LateFinding) => void) {
    this.#timeScale = timeScale;
    this.#tell = tell;
  }

  /** @param wallMs lateness in wall time */
  add(wallMs: number): void {
    this.#sumMs += wallMs;
    if (++this.#count < BLOCK) return;
    const wallMeanMs = this.#sumMs / this.#count;
    this.#count = 0;
    this.#sumMs = 0;
    const lateMs = wallMeanMs * this.#timeScale;
    if (this.#isWarm && !this.#hasTold && lateMs > ALLOWED_MS) {
      this.#hasTold = true;
      this.#tell({ lateMs, allowedMs: ALLOWED_MS, fittingScale: ALLOWED_MS / wallMeanMs });
    }
    this.#isWarm = true;
  }
}
