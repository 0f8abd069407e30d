import { batch, useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import { useEffect } from 'preact/hooks';
import type { EpisodeFile } from '../api/wire.ts';
import { useConsole } from '../components/console-context.ts';
import { count } from '../components/format.ts';
import { readEpisodeFile, writeEpisodeLink } from '../lazy/episode-link.ts';
import { authorOf } from '../lazy/run-history.ts';
import { openPanel } from '../state/overlays.ts';
import { CopyBox } from './copy-box.tsx';
import { SaveRun } from './save-run.tsx';

/** Links and files of the episode in focus, and the way back from a file. */
export function SharePanel(): JSX.Element {
  const state = useConsole();
  const run = state.run.value;
  const file = useSignal<EpisodeFile | undefined>(undefined);
  const link = useSignal('');
  const fault = useSignal('');
  const { sessionId } = run;
  const canKeep = state.abilities.value.episodes && sessionId !== undefined;
  useEffect(() => {
    if (!canKeep) return;
    void (async () => {
      try {
        const episode = { ...(await state.client.episode(sessionId)), author: authorOf(state, run) };
        const fragment = await writeEpisodeLink(episode);
        batch(() => {
          file.value = episode;
          link.value = `${location.origin}${location.pathname}${fragment}`;
        });
      } catch (error) {
        fault.value = (error as Error).message;
      }
    })();
  }, [canKeep, sessionId, run, file, link, fault, state]);
  const open = async (chosen: File | undefined) => {
    if (!chosen) return;
    try {
      const episode = readEpisodeFile(await chosen.text());
      openPanel.value = undefined;
      await state.openFile(episode, true);
    } catch (error) {
      fault.value = (error as Error).message;
    }
  };
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
              <p class="fine digest">
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
              onChange={(event) => void open(event.currentTarget.files?.[0])}
            />
          </label>
        </section>
      )}
      {fault.value && (
        <p class="fault" role="alert">
          {fault.value}
        </p>
      )}
    </>
  );
}

function fileName({ environment, reset }: EpisodeFile): string {
  const parts = [environment?.id, reset.task_id, reset.seed].filter((part) => part !== undefined);
  return `${parts.join('-').replace(/[^\w.-]+/g, '-')}.episode.json`;
}
