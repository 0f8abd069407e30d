import { batch } from '@preact/signals';
import type { Client } from '../api/client.ts';
import type { IsCurrent } from './current-episode.ts';
import type { Episodes } from './episodes.ts';
import type { PageSignals } from './page-signals.ts';
import type { Player } from './player.ts';
import { BY_HAND, createRun, RUN_PLACES, type Run } from './run.ts';
import type { Troubles } from './troubles.ts';

/** What `ConsoleState` offers to do with the runs beside one another. */
export interface RunsBeside {
  chooseDriver(driver: string, of?: Run): void;
  addRun(policy: string): Promise<void>;
  removeRun(gone: Run): void;
  branch(): Promise<void>;
}

export function createRunsBeside(
  client: Client,
  { runs, run, newest, position, playing, opened }: PageSignals,
  watch: () => IsCurrent,
  { report }: Troubles,
  { settled }: Player,
  { begin, startingKnobs }: Episodes,
  score: () => Promise<void>,
): RunsBeside {
  return {
    chooseDriver(name, of = run.value) {
      of.drive(name);
      if (name === BY_HAND) {
        run.value = of;
        playing.value = false;
      }
    },
    async addRun(policy) {
      const taken = runs.value.map(({ place }) => place);
      const place = Array.from({ length: RUN_PLACES }, (_, i) => i).find((i) => !taken.includes(i));
      if (place === undefined) return;
      const added = createRun(client, place, policy);
      const isCurrent = watch();
      try {
        await added.begin(run.value.reset, startingKnobs());
        if (!isCurrent()) return;
        runs.value = [...runs.value, added];
        while (added.played.value <= newest.value && !added.latest.value?.done) {
          await added.advance(newest.value + 1 - added.played.value);
          if (!isCurrent()) return;
        }
        await score();
      } catch (error) {
        if (isCurrent()) report(error, 'Start the episodes again', () => void begin(false));
      }
    },
    removeRun(gone) {
      if (runs.value.length === 1) return;
      batch(() => {
        runs.value = runs.value.filter((one) => one !== gone);
        if (run.value === gone) run.value = runs.value[0];
      });
    },
    async branch() {
      const at = position.value;
      if (at === null) return;
      const isCurrent = watch();
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
