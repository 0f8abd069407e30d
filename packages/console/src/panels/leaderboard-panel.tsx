import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import { useCallback, useEffect } from 'preact/hooks';
import type { EpisodeFile, LeaderboardEntry } from '../api/wire.ts';
import { Button } from '../components/controls.tsx';
import { signed } from '../components/format.ts';
import { useConsole } from '../state/console-state.ts';
import { openPanel } from '../state/page-signals.ts';
import { Table, useAttempt } from './copy-box.tsx';
import { SaveRun } from './share-panel.tsx';

/** The best runs of the task, each replayed by the server when it was saved and again when it is watched. */
export function LeaderboardPanel(): JSX.Element {
  const state = useConsole();
  const entries = useSignal<readonly LeaderboardEntry[] | undefined>(undefined);
  const { attempt, fault } = useAttempt();
  const task = state.chosenTask.value;
  const isThere = state.abilities.value.leaderboard;
  const taskId = task === undefined ? undefined : String(task.id);
  const fetchEntries = useCallback(async () => {
    if (!isThere) return;
    const query = taskId === undefined ? '' : `?task_id=${encodeURIComponent(taskId)}`;
    await attempt(async () => {
      const answer = await state.client.ask(`leaderboard${query}`);
      entries.value = answer.entries as LeaderboardEntry[];
    });
  }, [isThere, taskId, state, entries, attempt]);
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
          kind="runs"
          names={['Rank', 'Name', 'Score', 'Return', 'Seed', <span class="sr-only">Watch</span>]}
          rows={entries.value.map(({ id, rank, name, scenario, score, return: total, seed }) => [
            rank,
            <>
              {name}
              {scenario && <code class="scenario">{scenario}</code>}
            </>,
            score === null ? '–' : score.toFixed(3),
            signed(total),
            seed,
            <Button look="small" text="Watch" onClick={() => void watch(id)} />,
          ])}
        />
      )}
      {fault}
      <SaveRun onSaved={() => void fetchEntries()} />
    </>
  );
}
