/** Decides how many windows to ask for. Windows become due as time passes; a stall never piles up more than a quarter second of them. */
export interface Pacer {
  /** Windows to ask for now; 0 while too few are due. Call `played` with what came back. */
  due(nowMs: number, windowsPerSecond: number): number;
  played(windows: number): void;
  /** Forgets the past, so that the first windows are due at once. */
  restart(): void;
}

const LARGEST_REQUEST = 32;
const MOST_BEHIND_S = 0.25;
/** Faster play asks for several windows at once: the eye would not follow more updates, and the page must draw them. */
const UPDATES_PER_SECOND = 30;

export function createPacer(): Pacer {
  let last: number | undefined;
  let owed = 0;
  return {
    due(nowMs, windowsPerSecond) {
      const fewest = Math.max(1, Math.floor(windowsPerSecond / UPDATES_PER_SECOND));
      owed = last === undefined ? fewest : owed + ((nowMs - last) / 1000) * windowsPerSecond;
      owed = Math.min(owed, Math.max(1, windowsPerSecond * MOST_BEHIND_S));
      last = nowMs;
      const windows = Math.floor(owed);
      return windows < fewest ? 0 : Math.min(LARGEST_REQUEST, windows);
    },
    played(windows) {
      owed -= windows;
    },
    restart() {
      last = undefined;
    },
  };
}
