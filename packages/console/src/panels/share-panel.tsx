import { batch, useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import { useEffect } from 'preact/hooks';
import type { EpisodeFile } from '../api/wire.ts';
import { count } from '../components/format.ts';
import { authorOf, readEpisodeFile, writeEpisodeLink } from '../lazy/episode-files.ts';
import { useConsole } from '../state/console-state.ts';
import { openPanel } from '../state/page-signals.ts';
import { CopyBox, useAttempt } from './copy-box.tsx';

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
      {state.abilities.value.episodes && (
        <section>
          <h3>Open an episode</h3>
          <label class="grid">
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
