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
