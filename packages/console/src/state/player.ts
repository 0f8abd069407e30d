import type { IsCurrent } from './current-episode.ts';
import { createPacer } from './pacer.ts';
import type { PageSignals } from './page-signals.ts';
import { BY_HAND, type Run } from './run.ts';

/** Plays the episodes on and winds through what has been played. */
export interface Player {
  play(): void;
  /** `ConsoleState.tick`, `step` and `seek`. */
  tick(nowMs: number): void;
  step(): Promise<void>;
  seek(window: number): void;
  /** Resolves once no window is under way. */
  settled(): Promise<void>;
}

/**
 * @param watch answers whether the episode of now is still on the page
 * @param score asks for the grades of the runs that are over
 * @param interrupted is told what a request for windows met with, unless its episode has left the page
 */
export function createPlayer(
  { runs, newest, position, playing, joining, speed, areOver }: PageSignals,
  watch: () => IsCurrent,
  score: () => Promise<void>,
  interrupted: (error: unknown, isCurrent: IsCurrent) => void,
): Player {
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
    const isCurrent = watch();
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

  function seek(window: number): void {
    playing.value = false;
    position.value = window >= newest.value ? null : Math.max(0, window);
  }

  return {
    play() {
      pacer.restart();
      playing.value = true;
    },
    tick(nowMs) {
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
    async step() {
      playing.value = false;
      if (position.value !== null) {
        seek(position.value + 1);
        return;
      }
      if (asking) await asking;
      await advance(1);
    },
    seek,
    settled: async () => asking,
  };
}
