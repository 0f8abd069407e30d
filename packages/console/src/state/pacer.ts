/** Decides how many windows to ask for. Windows become due as time passes; a stall never piles up more than a quarter second of them. */
export interface Pacer {
  /** Windows to ask for now; 0 while nothing is due. Call `played` with what came back. */
  due(nowMs: number, windowsPerSecond: number): number;
  played(windows: number): void;
  /** Forgets the past, so that the first window is due at once. */
  restart(): void;
}

const LARGEST_REQUEST = 32;
const MOST_BEHIND_S = 0.25;

export function createPacer(): Pacer {
  let last: number | undefined;
  let owed = 1;
  return {
    due(nowMs, windowsPerSecond) {
      if (last !== undefined) owed += ((nowMs - last) / 1000) * windowsPerSecond;
      last = nowMs;
      owed = Math.min(owed, Math.max(1, windowsPerSecond * MOST_BEHIND_S));
      return Math.min(LARGEST_REQUEST, Math.floor(owed));
    },
    played(windows) {
      owed -= windows;
    },
    restart() {
      last = undefined;
      owed = 1;
    },
  };
}
