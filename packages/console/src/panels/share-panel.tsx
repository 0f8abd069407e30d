import { batch, useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import { useCallback, useEffect } from 'preact/hooks';
import { ApiError } from '../api/transport.ts';
import type { EpisodeFile, LeaderboardEntry } from '../api/wire.ts';
import { Button } from '../components/controls.tsx';
import { count, signed } from '../components/format.ts';
import { authorOf, LONGEST_NAME, readEpisodeFile, writeEpisodeLink } from '../lazy/run-history.ts';
import { useConsole } from '../state/console-state.ts';
import { openPanel } from '../state/page-signals.ts';
import { CopyBox, Table, useAttempt } from './copy-box.tsx';

/** Links and files of the episode in focus, and the way back from a file. */
export function SharePanel(): JSX.Element {
  const state = useConsole();
  const run = state.run.value;
  const file = useSignal<EpisodeFile | undefined>(undefined);
  const link = useSignal('');
  const { attempt, fault } = useAttempt();
  const { sessionId } = run;
  const canKeep = state.abilities.value.episodes && sessionId !== undefined;
  useEffect(() => {
    if (!canKeep) return;
    void attempt(async () => {
      const episode = { ...(await state.client.episode(sessionId)), author: authorOf(state, run) };
      const fragment = await writeEpisodeLink(episode);
      batch(() => {
        file.value = episode;
        link.value = `${location.origin}${location.pathname}${fragment}`;
      });
    });
  }, [canKeep, sessionId, run, file, link, attempt, state]);
  const open = (chosen: File) =>
    attempt(async () => {
      const episode = readEpisodeFile(await chosen.text());
      openPanel.value = undefined;
      await state.openFile(episode, true);
    });
  const scenario = `${location.origin}${location.pathname}${location.search}`;
  return (
    <>
      <section>
        <h3>The scenario</h3>
        <p class="fine">Task, seed and who plays. The link plays it anew.</p>
        <CopyBox label="Link to the scenario" text={scenario} />
      </section>
      {canKeep && (
        <section>
          <h3>This episode, move by move</h3>
          <p class="fine">
            {authorOf(state, run)}, {count(file.value?.actions.length ?? 0)} windows. Environment, version,
            seed and actions are in the link itself; the link shows the same episode, checked bit for bit.
          </p>
          <CopyBox label="Link to the episode" text={link.value} />
          {file.value && (
            <>
              <p class="fine gap">
                <span>Digest</span> <code>{file.value.digest}</code>
              </p>
              <a
                class="button"
                href={`data:application/json,${encodeURIComponent(JSON.stringify(file.value))}`}
                download={fileName(file.value)}
              >
                Save as file
              </a>
            </>
          )}
        </section>
      )}
      <SaveRun />
      {state.abilities.value.episodes && (
        <section>
          <h3>Open an episode</h3>
          <label class="file">
            <span class="fine">A file that was saved here</span>
            <input
              type="file"
              accept="application/json,.json"
              aria-label="Episode file"
              onChange={({ currentTarget: { files } }) => files?.[0] && void open(files[0])}
            />
          </label>
        </section>
      )}
      {fault}
    </>
  );
}

function fileName({ environment, reset }: EpisodeFile): string {
  const parts = [environment?.id, reset.task_id, reset.seed].filter((part) => part !== undefined);
  return `${parts.join('-').replace(/[^\w.-]+/g, '-')}.episode.json`;
}

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
        class="copy-box gap"
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

/** The best runs of the task, each replayed by the server when it was saved and again when it is watched. */
export function LeaderboardPanel(): JSX.Element {
  const state = useConsole();
  const entries = useSignal<readonly LeaderboardEntry[] | undefined>(undefined);
  const next = useSignal<string | null>(null);
  const { attempt, fault } = useAttempt();
  const task = state.chosenTask.value;
  const isThere = state.abilities.value.leaderboard;
  const taskId = task === undefined ? undefined : String(task.id);
  const fetchEntries = useCallback(
    async (after?: string) => {
      if (!isThere) return;
      const query = new URLSearchParams({
        ...(taskId !== undefined && { task_id: taskId }),
        ...(after !== undefined && { after }),
      });
      await attempt(async () => {
        const answer = await state.client.ask(`leaderboard?${query}`);
        const shown = after === undefined ? [] : (entries.value ?? []);
        entries.value = [...shown, ...(answer.entries as LeaderboardEntry[])];
        next.value = answer.next as string | null;
      });
    },
    [isThere, taskId, state, entries, next, attempt],
  );
  useEffect(() => void fetchEntries(), [fetchEntries]);
  if (!isThere) return <p class="fine">Episodes of this environment cannot be replayed, so none are kept.</p>;
  const watch = (id: number) =>
    attempt(async () => {
      const file = await state.client.ask(`leaderboard/${id}`);
      openPanel.value = undefined;
      await state.openFile(file as unknown as EpisodeFile, true);
    });
  return (
    <>
      <p class="fine">
        {task ? `${task.name}. ` : ''}Every run was replayed and graded by the server when it was saved. Ranks
        are among runs on the same seed. This is practice: a rank proves nothing.
      </p>
      {entries.value?.length === 0 && <p>No runs yet. Play one to its end and save it.</p>}
      {entries.value && entries.value.length > 0 && (
        <Table
          names={['Rank', 'Name', 'Score', 'Return', 'Seed', <span class="sr-only">Watch</span>]}
          rows={entries.value.map(({ id, rank, name, scenario, score, return: total, seed }) => [
            rank,
            <>
              {name}
              {scenario && <code class="scenario muted">{scenario}</code>}
            </>,
            score === null ? '–' : score.toFixed(3),
            signed(total),
            seed,
            <Button look="small" text="Watch" onClick={() => void watch(id)} />,
          ])}
        />
      )}
      {next.value !== null && (
        <Button look="small" text="More" onClick={() => void fetchEntries(next.value!)} />
      )}
      {fault}
      <SaveRun onSaved={() => void fetchEntries()} />
    </>
  );
}
