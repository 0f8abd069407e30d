import { batch } from '@preact/signals';
import type { Client } from '../api/client.ts';
import type { IsCurrent } from './current-episode.ts';
import type { Episodes } from './episodes.ts';
import type { PageSignals } from './page-signals.ts';
import type { Player } from './player.ts';
import { BY_HAND, createRun, RUN_PLACES, type Run } from './run.ts';
import type { Troubles } from './troubles.ts';

/** Windows that a new run asks for first, before it is known how long one takes. */
const FIRST_WINDOWS = 4;

/** What `ConsoleState` offers to do with the runs beside one another. */
export interface RunsBeside {
  chooseDriver(driver: string, of?: Run): void;
  addRun(policy: string): Promise<void>;
  removeRun(gone: Run): void;
  branch(): Promise<void>;
}

export function createRunsBeside(
  client: Client,
  { runs, run, newest, position, playing, joining, opened }: PageSignals,
  watch: () => IsCurrent,
  { report }: Troubles,
  { settled }: Player,
  { begin, startingKnobs }: Episodes,
  score: () => Promise<void>,
): RunsBeside {
  /** Plays a new run up to the newest window of the others, about a second of the server's work at a time. */
  async function catchUp(added: Run, isCurrent: IsCurrent): Promise<void> {
    let windows = FIRST_WINDOWS;
    while (added.played.value <= newest.value && !added.isOver.value) {
      const startedAt = performance.now();
      await added.advance(Math.min(windows, newest.value + 1 - added.played.value));
      if (!isCurrent() || !runs.value.includes(added)) return;
      const seconds = Math.max(0.01, (performance.now() - startedAt) / 1000);
      windows = Math.max(1, Math.min(2 * windows, Math.round(windows / seconds)));
    }
  }

  async function addRun(policy: string): Promise<void> {
    const taken = runs.value.map(({ place }) => place);
    const place = Array.from({ length: RUN_PLACES }, (_, i) => i).find((i) => !taken.includes(i));
    if (place === undefined || joining.value) return;
    const added = createRun(client, place, policy);
    const isCurrent = watch();
    joining.value = added;
    try {
      await added.begin(run.value.reset, startingKnobs());
      if (!isCurrent()) return;
      runs.value = [...runs.value, added];
      await catchUp(added, isCurrent);
    } catch (error) {
      if (!isCurrent()) return;
      removeRun(added);
      report(error, 'Add it again', () => void addRun(policy));
      return;
    } finally {
      joining.value = undefined;
    }
    if (isCurrent()) await score();
  }

  function removeRun(gone: Run): void {
    if (runs.value.length === 1) return;
    batch(() => {
      runs.value = runs.value.filter((one) => one !== gone);
      if (run.value === gone) run.value = runs.value[0];
    });
  }

  return {
    chooseDriver(name, of = run.value) {
      of.drive(name);
      if (name === BY_HAND) {
        run.value = of;
        playing.value = false;
      }
    },
    addRun,
    removeRun,
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
