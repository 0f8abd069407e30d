import { effect } from '@preact/signals';
import { render } from 'preact';
import { createClient } from './api/client.ts';
import { App } from './app.tsx';
import { startTheme } from './charts/palette.ts';
import { ConsoleContext } from './components/console-context.ts';
import { readChoices, writeChoices } from './state/choices.ts';
import { createConsoleState } from './state/console-state.ts';
import { playInFrames, playWithKeys } from './state/playback.ts';

startTheme();
const state = createConsoleState(createClient(new URL('../', document.baseURI)));
render(
  <ConsoleContext.Provider value={state}>
    <App />
  </ConsoleContext.Provider>,
  document.getElementById('console')!,
);
playInFrames(state);
playWithKeys(state);
await state.connect(readChoices(location.search), !matchMedia('(prefers-reduced-motion: reduce)').matches);
effect(() => {
  if (!state.environment.value) return;
  history.replaceState(
    null,
    '',
    writeChoices({ task: state.task.value, seed: state.seed.value, policy: state.driver.value }),
  );
});
