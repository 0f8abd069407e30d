import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import { useCallback, useEffect } from 'preact/hooks';
import type { EpisodeFile, LeaderboardEntry } from '../api/wire.ts';
import { Button } from '../components/controls.tsx';
import { signed } from '../components/format.ts';
import { useConsole } from '../state/console-state.ts';
import { openPanel } from '../state/page-signals.ts';
import { SaveRun } from './share-panel.tsx';

/** The best runs of the task, each replayed by the server when it was saved and again when it is watched. */
export function LeaderboardPanel(): JSX.Element {
  const state = useConsole();
  const entries = useSignal<readonly LeaderboardEntry[] | undefined>(undefined);
  const fault = useSignal('');
  const task = state.chosenTask.value;
  const isThere = state.abilities.value.leaderboard;
  const taskId = task === undefined ? undefined : String(task.id);
  const fetchEntries = useCallback(async () => {
    if (!isThere) return;
    const query = taskId === undefined ? '' : `?task_id=${encodeURIComponent(taskId)}`;
    try {
      const answer = await state.client.ask(`leaderboard${query}`);
      entries.value = answer.entries as LeaderboardEntry[];
    } catch (error) {
      fault.value = (error as Error).message;
    }
  }, [isThere, taskId, state, entries, fault]);
  useEffect(() => void fetchEntries(), [fetchEntries]);
  if (!isThere) return <p class="fine">Episodes of this environment cannot be replayed, so none are kept.</p>;
  const watch = async (id: number) => {
    try {
      const file = await state.client.ask(`leaderboard/${id}`);
      openPanel.value = undefined;
      await state.openFile(file as unknown as EpisodeFile, true);
    } catch (error) {
      fault.value = (error as Error).message;
    }
  };
  return (
    <>
      <p class="fine">
        {task ? `${task.name}. ` : ''}Every run was replayed and graded by the server when it was saved. Ranks
        are among runs on the same seed. This is practice: a rank proves nothing.
      </p>
      {entries.value?.length === 0 && <p>No runs yet. Play one to its end and save it.</p>}
      {entries.value && entries.value.length > 0 && (
        <table class="runs">
          <thead>
            <tr>
              <th scope="col">Rank</th>
              <th scope="col">Name</th>
              <th scope="col">Score</th>
              <th scope="col">Return</th>
              <th scope="col">Seed</th>
              <th scope="col">
                <span class="sr-only">Watch</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {entries.value.map((entry) => (
              <tr key={entry.id}>
                <td>{entry.rank}</td>
                <td>
                  {entry.name}
                  {entry.scenario && <code class="scenario">{entry.scenario}</code>}
                </td>
                <td>{entry.score === null ? '–' : entry.score.toFixed(3)}</td>
                <td>{signed(entry.return)}</td>
                <td>{entry.seed}</td>
                <td>
                  <Button look="small" text="Watch" onClick={() => void watch(entry.id)} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {fault.value && (
        <p class="fault" role="alert">
          {fault.value}
        </p>
      )}
      <SaveRun onSaved={() => void fetchEntries()} />
    </>
  );
}
