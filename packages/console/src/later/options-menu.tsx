import { effect } from '@preact/signals';
import type { JSX } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { useConsole } from '../components/console-context.ts';
import { words } from '../components/format.ts';
import { KnobControl } from '../knobs/knob-control.tsx';
import { knobText } from '../knobs/knob-text.ts';
import { tourStep } from '../state/tour-state.ts';
import { EnvironmentChoice } from './environment-choice.tsx';

/** The environment, and the options of the episode that it offers: traffic, trace, shift, profile, and what else there may be. */
export function OptionsMenu(): JSX.Element {
  const state = useConsole();
  const options = state.abilities.value.resetOptions;
  const chosen = Object.keys(state.options.value).length;
  const menu = useRef<HTMLDivElement>(null);
  useEffect(() => closeFromOutside(menu.current!.closest('details')!), []);
  return (
    <div class="panel menu" ref={menu}>
      <EnvironmentChoice />
      {options.map((option) => (
        <div class="option" key={option.name}>
          <span class="knob-label">
            {words(option.name)}
            {option.kind === 'range' &&
              ` · ${knobText(option, state.options.value[option.name] ?? option.initial)}`}
          </span>
          <KnobControl
            knob={option}
            label={words(option.name)}
            value={state.options.value[option.name] ?? option.initial}
            locked={false}
            clearable
            onTurn={(value) => state.chooseOption(option.name, value)}
          />
          <p class="trade">{option.description}</p>
        </div>
      ))}
      {chosen > 0 && (
        <button
          type="button"
          class="button small"
          onClick={() => {
            for (const name of Object.keys(state.options.value)) state.chooseOption(name, undefined);
          }}
        >
          As the task has it
        </button>
      )}
    </div>
  );
}

/** Closes the menu by Escape, when something beside it is clicked or focused, and when the tour starts. Answers how to stop. */
function closeFromOutside(menu: HTMLDetailsElement): () => void {
  const close = () => {
    menu.open = false;
  };
  const closeOutside = ({ target }: Event) => {
    if (target instanceof Node && !menu.contains(target)) close();
  };
  const closeByEscape = ({ key }: KeyboardEvent) => {
    if (key !== 'Escape') return;
    close();
    menu.querySelector('summary')?.focus();
  };
  const stopWatching = effect(() => {
    if (tourStep.value !== undefined) close();
  });
  addEventListener('pointerdown', closeOutside);
  addEventListener('focusin', closeOutside);
  addEventListener('keydown', closeByEscape);
  return () => {
    stopWatching();
    removeEventListener('pointerdown', closeOutside);
    removeEventListener('focusin', closeOutside);
    removeEventListener('keydown', closeByEscape);
  };
}
