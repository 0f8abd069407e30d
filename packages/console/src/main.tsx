import { effect } from '@preact/signals';
import { render } from 'preact';
import { createClient } from './api/client.ts';
import { App } from './app.tsx';
import { startTheme } from './charts/palette.ts';
import { EPISODE_FRAGMENT, readChoices, writeChoices } from './state/choices.ts';
import { ConsoleContext, type ConsoleState, createConsoleState } from './state/console-state.ts';
import { isSettled, openPanel } from './state/page-signals.ts';
import { RECORDED, RUN_PLACES } from './state/run.ts';

startTheme();
const client = createClient(new URL('../', document.baseURI));
const state = createConsoleState(client);
render(
  <ConsoleContext.Provider value={state}>
    <App />
  </ConsoleContext.Provider>,
  document.getElementById('console')!,
);
effect(playInFrames);
listenToKeys(state, () => {
  openPanel.value = 'help';
});

const mayMove = !matchMedia('(prefers-reduced-motion: reduce)').matches;
void start();

/** A function, because parts that are fetched later wait for this module, which must not wait for them. */
async function start(): Promise<void> {
  const fragment = location.hash;
  await state.connect(readChoices(location.search), mayMove && !isEpisode(fragment));
  if (isEpisode(fragment)) await openLink();
  addEventListener('hashchange', () => {
    if (isEpisode(location.hash)) void openLink();
  });
  effect(rememberInAddress);
}

/** Drives the episode with the display's frames while it plays. */
function playInFrames(): undefined | (() => void) {
  if (!state.playing.value || !isSettled.value) return;
  let frame = requestAnimationFrame(function next(now) {
    frame = requestAnimationFrame(next);
    state.tick(now);
  });
  return () => cancelAnimationFrame(frame);
}

function rememberInAddress(): void {
  if (!state.environment.value) return;
  const query = writeChoices({
    task: state.task.value,
    seed: state.seed.value,
    policies: state.runs.value.map(({ driver }) => driver.value).filter((name) => name !== RECORDED),
    options: state.options.value,
  });
  // The link of an episode stands in the address for as long as that episode is shown.
  const kept = state.opened.value && isEpisode(location.hash) ? location.hash : '';
  history.replaceState(null, '', query + kept);
}

function isEpisode(text: string): boolean {
  return text.startsWith(EPISODE_FRAGMENT);
}

async function openLink(): Promise<void> {
  const { readEpisodeLink } = await import('./lazy/episode-files.ts');
  try {
    await state.openFile(await readEpisodeLink(location.hash), mayMove);
  } catch (error) {
    state.showProblem((error as Error).message);
  }
}

/** Plays and winds by keys, unless the key means something to the focused control. */
function listenToKeys(state: ConsoleState, showHelp: () => void): void {
  addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const isOn = (controls: string) =>
      event.target instanceof Element && event.target.closest(controls) !== null;
    if (isOn('dialog') || isOn('input:not([type=range]), select, textarea')) return;
    if (event.key === ' ') {
      if (event.repeat || isOn('button, summary, a')) return;
      state.togglePlay();
    } else if (isOn('input')) return;
    else if (event.key === 'ArrowRight') void state.step();
    else if (event.key === 'ArrowLeft') state.seek((state.position.value ?? state.newest.value) - 1);
    else if (event.key === 'Home') state.seek(0);
    else if (event.key === 'End') state.seek(Infinity);
    else if (event.key === '+') state.zoom(1 / 2);
    else if (event.key === '-') state.zoom(2);
    else if (event.key === '?') showHelp();
    else if (Number(event.key) >= 1 && Number(event.key) <= RUN_PLACES) {
      const run = state.runs.value[Number(event.key) - 1];
      if (run) state.focus(run);
    } else return;
    event.preventDefault();
  });
}
