import { batch } from '@preact/signals';
import type { Client } from '../api/client.ts';
import type { Episodes } from './episodes.ts';
import { type PageSignals, watchEpisode } from './page-signals.ts';
import type { Player } from './player.ts';
import type { Problems } from './reconnection.ts';
import { BY_HAND, RUN_PLACES, Run } from './run.ts';

/** Windows that a new run asks for first, before it is known how long one takes. */
const FIRST_WINDOWS = 4;

/** What can be told to runs side by side. */
export function createRunsBeside(
  client: Client,
  page: PageSignals,
  { report }: Problems,
  { settled, score }: Player,
  { begin, startingKnobs }: Episodes,
) {
  const { runs, run, newest, position, playing, opened, joining } = page;

  /** Resolves when the run that was added last has joined. */
  let joined: Promise<void> = Promise.resolve();

  /**
   * Puts another policy beside the runs, on the same episode, and lets it catch up: one after another, in the order in
   * which they are chosen.
   */
  function addRun(policy: string): Promise<void> {
    joined = joined.then(() => join(policy));
    return joined;
  }

  /** Plays a new run up to the newest window of the others. It leaves the page again when the server refuses. */
  async function join(policy: string): Promise<void> {
    const taken = runs.value.map(({ place }) => place);
    const place = Array.from({ length: RUN_PLACES }, (_, i) => i).find((i) => !taken.includes(i));
    if (place === undefined) return;
    const added = new Run(client, place, policy);
    const isCurrent = watchEpisode(page);
    joining.value = added;
    try {
      await added.begin(run.value.reset, startingKnobs());
      if (!isCurrent()) return;
      runs.value = [...runs.value, added];
      // About a second of the server's work at a time.
      let windows = FIRST_WINDOWS;
      while (added.played.value <= newest.value && !added.isOver.value) {
        const startedAt = performance.now();
        await added.advance(Math.min(windows, newest.value + 1 - added.played.value));
        if (!isCurrent() || !runs.value.includes(added)) return;
        const seconds = Math.max(0.01, (performance.now() - startedAt) / 1000);
        windows = Math.max(1, Math.min(2 * windows, Math.round(windows / seconds)));
      }
      joining.value = undefined;
      await score();
    } catch (error) {
      if (!isCurrent()) return;
      removeRun(added);
      report(error, 'Add it again', () => void addRun(policy));
    } finally {
      joining.value = undefined;
    }
  }

  function removeRun(gone: Run): void {
    if (runs.value.length === 1) return;
    batch(() => {
      runs.value = runs.value.filter((one) => one !== gone);
      if (run.value === gone) run.value = runs.value[0];
    });
  }

  return {
    chooseDriver(name: string, of: Run = run.value): void {
      of.drive(name);
      if (name === BY_HAND) {
        run.value = of;
        playing.value = false;
      }
    },
    addRun,
    removeRun,
    /** Drops what the run in focus has played after the shown window, and goes on from there. */
    async branch(): Promise<void> {
      const at = position.value;
      if (at === null) return;
      const isCurrent = watchEpisode(page);
      playing.value = false;
      try {
        await settled();
        await run.value.branchAt(Math.min(at, run.value.played.value - 1));
        batch(() => {
          position.value = null;
          opened.value = undefined;
        });
      } catch (error) {
        if (isCurrent()) report(error, 'Start the episode again', () => void begin(false));
      }
    },
  };
}
