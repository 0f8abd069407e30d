import { TICKS_PER_MS } from '@servegym/simulator';

export interface SimulatedClockOptions {
  /** Simulated time that passes while one second of wall time does. */
  readonly timeScale: number;
  /** Wall time, ms, monotonic. Default: the process's. */
  readonly wallMs?: () => number;
}

/**
 * Ties the ticks of a simulated engine to wall time. A moment is always computed from the origin, never from the moment
 * before, so that lateness does not add up.
 */
export class SimulatedClock {
  readonly timeScale: number;
  readonly wallMs: () => number;
  readonly #originWallMs: number;
  #originTick = 0;

  constructor({ timeScale, wallMs = () => performance.now() }: SimulatedClockOptions) {
    this.timeScale = timeScale;
    this.wallMs = wallMs;
    this.#originWallMs = wallMs();
  }

  /** The tick of now. */
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
