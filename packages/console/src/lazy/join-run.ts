import type { Client } from '../api/client.ts';
import type { Fields } from '../api/wire.ts';
import { type PageSignals, watchEpisode } from '../state/page-signals.ts';
import { RUN_PLACES, Run } from '../state/run.ts';

/** Windows that a new run asks for first, before it is known how long one takes. */
const FIRST_WINDOWS = 4;

/** Parts of the page that a joining run needs. */
interface JoinContext {
  readonly client: Client;
  readonly page: PageSignals;
  readonly removeRun: (run: Run) => void;
  readonly startingKnobs: () => Fields;
}

/**
 * Puts a run of a policy beside the others, on the same episode, and plays it up to their newest window. It leaves the
 * page again when the server refuses, unless its episode has left before. @throws ApiError
 */
export async function joinRun(
  policy: string,
  { client, page, removeRun, startingKnobs }: JoinContext,
): Promise<void> {
  const { runs, run, newest, joining } = page;
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
  } catch (error) {
    if (!isCurrent()) return;
    removeRun(added);
    throw error;
  } finally {
    joining.value = undefined;
  }
}
