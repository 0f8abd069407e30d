import { batch } from '@preact/signals';
import type { Client } from '../api/client.ts';
import { fetchPart } from '../api/transport.ts';
import type { Episodes } from './episodes.ts';
import { type PageSignals, watchEpisode } from './page-signals.ts';
import type { Player } from './player.ts';
import type { Problems } from './reconnection.ts';
import { BY_HAND, type Run } from './run.ts';

/** What can be told to runs side by side. */
export function createRunsBeside(
  client: Client,
  page: PageSignals,
  { report }: Problems,
  { settled, score }: Player,
  { begin, startingKnobs }: Episodes,
) {
  const { runs, run, position, playing, opened } = page;

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

  async function join(policy: string): Promise<void> {
    try {
      const { joinRun } = await fetchPart(import('../lazy/join-run.ts'));
      await joinRun(policy, { client, page, removeRun, startingKnobs });
      await score();
    } catch (error) {
      report(error, 'Add it again', () => void addRun(policy));
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
