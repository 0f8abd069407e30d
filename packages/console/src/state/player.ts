import { type PageSignals, watchEpisode } from './page-signals.ts';
import type { Problems } from './reconnection.ts';
import { BY_HAND, type Run } from './run.ts';

const LARGEST_REQUEST = 32;
const MOST_BEHIND_S = 0.25;
/** Faster play asks for several windows at once: the eye would not follow more updates, and the page must draw them. */
const UPDATES_PER_SECOND = 30;

/** Decides how many windows to ask for. Windows become due as time passes; a stall never piles up more than a quarter second of them. */
export function createPacer() {
  let last: number | undefined;
  let owed = 0;
  return {
    /** Windows to ask for now; 0 while too few are due. Call `played` with what came back. */
    due(nowMs: number, windowsPerSecond: number): number {
      const fewest = Math.max(1, Math.floor(windowsPerSecond / UPDATES_PER_SECOND));
      owed = last === undefined ? fewest : owed + ((nowMs - last) / 1000) * windowsPerSecond;
      owed = Math.min(owed, Math.max(1, windowsPerSecond * MOST_BEHIND_S));
      last = nowMs;
      const windows = Math.floor(owed);
      return windows < fewest ? 0 : Math.min(LARGEST_REQUEST, windows);
    },
    played(windows: number): void {
      owed -= windows;
    },
    /** Forgets the past, so that the first windows are due at once. */
    restart(): void {
      last = undefined;
    },
  };
}

export type Player = ReturnType<typeof createPlayer>;

/**
 * Plays the episodes on and winds through what has been played.
 * @param interrupted handles an error of a request for windows, unless its episode has left the page
 */
export function createPlayer(
  page: PageSignals,
  { report }: Problems,
  interrupted: (error: unknown, isCurrent: () => boolean) => void,
) {
  const { runs, newest, position, playing, joining, speed, areOver, abilities } = page;
  const pacer = createPacer();
  let asking: Promise<void> | undefined;

  /** Plays so many windows more on every run that is not over, those that are behind first; one request at a time. */
  async function advance(windows: number): Promise<void> {
    const active = runs.value.filter((one) => one.latest.value && !one.isOver.value && one !== joining.value);
    if (asking || active.length === 0) return;
    asking = ask(active, windows).finally(() => {
      asking = undefined;
    });
    await asking;
  }

  async function ask(active: readonly Run[], windows: number): Promise<void> {
    const isCurrent = watchEpisode(page);
    const behind = Math.min(...active.map(({ played }) => played.value));
    const isByHand = active.some((one) => one.driver.value === BY_HAND);
    const target = behind + (isByHand ? 1 : windows);
    try {
      await Promise.all(
        active.map(async (one) => {
          if (one.played.value < target) await one.advance(target - one.played.value);
        }),
      );
      pacer.played(target - behind);
      await score();
    } catch (error) {
      if (isCurrent()) interrupted(error, isCurrent);
    }
    if (areOver.value) playing.value = false;
  }

  /** Asks the server for the grades of the runs that are over and have none yet. */
  async function score(): Promise<void> {
    const ungraded = runs.value.filter((one) => one.latest.value?.done && !one.grade.value);
    if (!abilities.value.grader || ungraded.length === 0) return;
    try {
      await Promise.all(ungraded.map((one) => one.score()));
    } catch (error) {
      report(error, 'Ask for the score again', () => void score());
    }
  }

  /** Shows a window; the newest and those beyond it: live again. Pauses. */
  function seek(window: number): void {
    playing.value = false;
    position.value = window >= newest.value ? null : Math.max(0, window);
  }

  return {
    play(): void {
      pacer.restart();
      playing.value = true;
    },
    /** To be called once a displayed frame while playing. */
    tick(nowMs: number): void {
      if (!playing.value || asking) return;
      const windows = pacer.due(nowMs, speed.value);
      if (windows === 0) return;
      if (position.value === null) {
        void advance(windows);
        return;
      }
      pacer.played(windows);
      const next = position.value + windows;
      const isNewest = next >= newest.value;
      position.value = isNewest ? null : next;
      if (isNewest && areOver.value) playing.value = false;
    },
    /** Plays or shows one window more, and pauses. */
    async step(): Promise<void> {
      playing.value = false;
      if (position.value !== null) {
        seek(position.value + 1);
        return;
      }
      if (asking) await asking;
      await advance(1);
    },
    seek,
    /** Resolves once no window is under way. */
    settled: async () => asking,
    score,
  };
}
