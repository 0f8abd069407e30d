import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import { Button, Icon } from '../components/controls.tsx';
import { count, signed, words } from '../components/format.ts';
import {
  type KeptRun,
  LONGEST_NAME,
  readEpisodeLink,
  replayedFrames,
  rowsOf,
  runHistory,
} from '../lazy/run-history.ts';
import { useConsole } from '../state/console-state.ts';
import { openPanel } from '../state/page-signals.ts';
import { RUN_PLACES } from '../state/run.ts';
import { CopyBox, useAttempt } from './copy-box.tsx';
import { saveCsv } from './csv.ts';

/** The finished runs that this browser keeps of the environment, pinned ones first. */
export function HistoryPanel(): JSX.Element {
  const state = useConsole();
  const chosen = useSignal<readonly string[]>([]);
  const { attempt, fault } = useAttempt();
  const environment = state.environment.value?.name;
  const own = runHistory.runs.value.filter((run) => run.environment === environment);
  const runs = [...own.filter(({ isPinned }) => isPinned), ...own.filter(({ isPinned }) => !isPinned)];
  const compared = runs.filter(({ id }) => chosen.value.includes(id));
  const tasks = new Set(compared.map(({ task }) => task));
  const open = (opened: readonly KeptRun[]) =>
    attempt(async () => {
      const [first, ...beside] = await Promise.all(opened.map(({ episode }) => readEpisodeLink(episode!)));
      openPanel.value = undefined;
      await state.openFile(first, opened.length === 1, beside);
    });
  const saveWindows = (run: KeptRun) =>
    attempt(async () => {
      const frames = await replayedFrames(state.client, await readEpisodeLink(run.episode!));
      saveCsv(titleOf(run), rowsOf(frames));
    });
  return (
    <>
      <p class="fine">
        Finished runs, kept in this browser: the last ones, and those that are pinned. Choose up to{' '}
        {RUN_PLACES} of a task to put them side by side.
      </p>
      {runs.length === 0 && <p>No runs yet. Play one to its end.</p>}
      {runs.length > 0 && (
        <Button
          look="primary compare-kept"
          text={tasks.size > 1 ? 'Choose runs of one task' : 'Compare the chosen runs'}
          disabled={compared.length < 2 || tasks.size > 1}
          onClick={() => void open(compared)}
        />
      )}
      {fault}
      <ul class="kept-runs">
        {runs.map((run) => (
          <KeptRunEntry
            key={run.id}
            run={run}
            isChosen={chosen.value.includes(run.id)}
            mayChoose={chosen.value.length < RUN_PLACES}
            onChoose={(isChosen) => {
              const others = chosen.value.filter((id) => id !== run.id);
              chosen.value = isChosen ? [...others, run.id] : others;
            }}
            onOpen={() => void open([run])}
            onCsv={() => void saveWindows(run)}
          />
        ))}
      </ul>
    </>
  );
}

/** The name of a run, or what tells it apart. */
function titleOf({ name, task, seed, player }: KeptRun): string {
  return (
    name || [player, task && words(task), seed !== undefined && `seed ${seed}`].filter(Boolean).join(', ')
  );
}

interface KeptRunEntryProps {
  readonly run: KeptRun;
  readonly isChosen: boolean;
  readonly mayChoose: boolean;
  readonly onChoose: (isChosen: boolean) => void;
  readonly onOpen: () => void;
  readonly onCsv: () => void;
}

function KeptRunEntry({ run, isChosen, mayChoose, onChoose, onOpen, onCsv }: KeptRunEntryProps): JSX.Element {
  const isLinkShown = useSignal(false);
  const { id, at, task, seed, options, player, name, windows, total, score, episode, isPinned } = run;
  const title = titleOf(run);
  const scenario = Object.keys(options).length > 0 && JSON.stringify(options);
  return (
    <li aria-label={title}>
      <div class="kept-run row wrap">
        <input
          type="checkbox"
          aria-label={`Compare ${title}`}
          checked={isChosen}
          disabled={episode === undefined || (!isChosen && !mayChoose)}
          onChange={(event) => onChoose(event.currentTarget.checked)}
        />
        <input
          type="text"
          aria-label={`Name of ${title}`}
          placeholder={player}
          maxLength={LONGEST_NAME}
          value={name ?? ''}
          onChange={(event) => runHistory.change(id, { name: event.currentTarget.value.trim() })}
        />
        <strong>{score === undefined ? signed(total) : score.toFixed(3)}</strong>
      </div>
      <p class="fine">
        {[
          name && player,
          task && words(task),
          seed !== undefined && `seed ${seed}`,
          `${count(windows)} windows`,
          score !== undefined && `return ${signed(total)}`,
          new Date(at).toLocaleString([], { dateStyle: 'medium', timeStyle: 'short' }),
        ]
          .filter(Boolean)
          .join(' · ')}
        {scenario && <code class="scenario muted">{scenario}</code>}
      </p>
      <div class="kept-actions row wrap">
        <Button
          look="small"
          text={isPinned ? 'Pinned' : 'Pin'}
          aria-pressed={isPinned === true}
          onClick={() => runHistory.change(id, { isPinned: !isPinned })}
        />
        {episode !== undefined && (
          <>
            <Button look="small" text="Watch" onClick={onOpen} />
            <Button
              look="small"
              text="Link"
              aria-expanded={isLinkShown.value}
              onClick={() => {
                isLinkShown.value = !isLinkShown.value;
              }}
            />
            <Button look="small" text="CSV" onClick={onCsv} />
          </>
        )}
        <Button
          look="bare"
          text={<Icon name="close" />}
          aria-label={`Delete ${title}`}
          title="Delete"
          onClick={() => runHistory.remove(id)}
        />
      </div>
      {isLinkShown.value && (
        <CopyBox label="Link to the episode" text={`${location.origin}${location.pathname}${episode}`} />
      )}
    </li>
  );
}
