import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import { ApiError } from '../api/api-error.ts';
import type { LeaderboardEntry } from '../api/wire.ts';
import { useConsole } from '../components/console-context.ts';
import { Button } from '../components/controls.tsx';
import { authorOf } from '../lazy/run-history.ts';

/** Longest name on the leaderboard, characters. */
const LONGEST_NAME = 60;

/** Puts the finished episode in focus on the leaderboard. */
export function SaveRun({ onSaved }: { onSaved?: () => void }): JSX.Element | null {
  const state = useConsole();
  const run = state.run.value;
  const name = useSignal(authorOf(state, run).slice(0, LONGEST_NAME));
  const said = useSignal('');
  if (!state.abilities.value.leaderboard) return null;
  const isOver = state.latest.value?.done === true;
  const save = async () => {
    if (run.sessionId === undefined) return;
    try {
      const request = { session_id: run.sessionId, name: name.value };
      // There is no entry where the run does not reach the board.
      const { entry } = await state.client.ask('leaderboard', request);
      said.value = entry
        ? `Saved: rank ${(entry as LeaderboardEntry).rank}, replayed and checked by the server.`
        : 'Replayed and checked, but the runs on the board are better.';
      onSaved?.();
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      said.value = error.message;
    }
  };
  return (
    <section>
      <h3>Put it on the leaderboard</h3>
      <form
        class="copy-box"
        onSubmit={(event) => {
          event.preventDefault();
          void save();
        }}
      >
        <input
          type="text"
          aria-label="Name on the leaderboard"
          maxLength={LONGEST_NAME}
          required
          value={name.value}
          onInput={(event) => {
            name.value = event.currentTarget.value;
          }}
        />
        <Button look="primary" text="Save run" type="submit" disabled={!isOver} />
      </form>
      <p class="fine" role="status">
        {said.value || (isOver ? 'The server replays it and grades it itself.' : 'Once the episode is over.')}
      </p>
    </section>
  );
}
