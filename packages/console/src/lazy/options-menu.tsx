import { useSignal } from '@preact/signals';
import type { EnvironmentEntry } from '@servegym/openenv/protocol';
import type { JSX } from 'preact';
import { useEffect, useId, useRef } from 'preact/hooks';
import { Button, Select } from '../components/controls.tsx';
import { words } from '../components/format.ts';
import { listen } from '../components/listen.ts';
import { KnobControl, type KnobControlProps } from '../knobs/knob-panel.tsx';
import { knobText } from '../knobs/knob-values.ts';
import { useConsole } from '../state/console-state.ts';

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
          <span class="bold">
            {words(option.name)}
            {option.kind === 'range' &&
              ` · ${knobText(option, state.options.value[option.name] ?? option.initial)}`}
          </span>
          <OptionControl
            knob={option}
            label={words(option.name)}
            value={state.options.value[option.name] ?? option.initial}
            locked={false}
            clearable
            onTurn={(value) => state.chooseOption(option.name, value)}
          />
          <p class="trade fine">{option.description}</p>
        </div>
      ))}
      {chosen > 0 && (
        <Button
          look="small"
          text="As the task has it"
          onClick={() => {
            for (const name of Object.keys(state.options.value)) state.chooseOption(name, undefined);
          }}
        />
      )}
    </div>
  );
}

/** More values than these are searched by typing. */
const MOST_LISTED = 30;

function OptionControl(props: KnobControlProps): JSX.Element {
  const { knob, label, value, onTurn } = props;
  const id = useId();
  if (knob.kind !== 'choice' || knob.values.length <= MOST_LISTED) return <KnobControl {...props} />;
  return (
    <>
      <input
        type="search"
        name={knob.name}
        aria-label={label}
        list={id}
        placeholder={`search ${knob.values.length}`}
        value={value === undefined ? '' : String(value)}
        onChange={({ currentTarget }) => {
          const text = currentTarget.value.trim();
          const isKnown = knob.values.includes(text);
          currentTarget.setCustomValidity(isKnown || text === '' ? '' : `There is no ${label} ${text}`);
          if (currentTarget.reportValidity()) onTurn(isKnown ? text : undefined);
        }}
      />
      <datalist id={id}>
        {knob.values.map((option) => (
          <option key={String(option)} value={String(option)} />
        ))}
      </datalist>
    </>
  );
}

/** Closes the menu by Escape and when something beside it is clicked or focused. Answers how to stop. */
function closeFromOutside(menu: HTMLDetailsElement): () => void {
  const close = () => {
    menu.open = false;
  };
  const closeOutside = ({ target }: Event) => {
    if (target instanceof Node && !menu.contains(target)) close();
  };
  const keydown = (event: Event) => {
    if ((event as KeyboardEvent).key !== 'Escape') return;
    close();
    menu.querySelector('summary')?.focus();
  };
  return listen({ pointerdown: closeOutside, focusin: closeOutside, keydown });
}

/** The path of the page's own server. */
const HERE = './';

/** The environment of the page, and those of the same port, whose pages it leads to. */
function EnvironmentChoice(): JSX.Element {
  const { client, environment } = useConsole();
  const entries = useSignal<readonly EnvironmentEntry[]>([]);
  useEffect(() => {
    client.ask('environments').then(
      (answer) => {
        if (Array.isArray(answer.environments)) entries.value = answer.environments;
      },
      // The page says by itself when the server does not answer, and does well without a list.
      () => {},
    );
  }, [client, entries]);
  const isAlone = entries.value.length < 2;
  return (
    <div class="option">
      <span class="bold">Environment</span>
      {isAlone ? (
        <span>
          {environment.value?.name} {environment.value?.version}
        </span>
      ) : (
        <Select
          aria-label="Environment"
          value={HERE}
          options={entries.value.map(({ name, version, path }) => ({
            value: path,
            text: `${name} ${version}`,
          }))}
          onChoose={(path) => location.assign(`../${path}web/`)}
        />
      )}
      <p class="trade fine">{environment.value?.description}</p>
    </div>
  );
}

/** A field to type into: numbers without bounds, texts, and what else is JSON. */
export function PlainField({ knob, label, value, locked, onTurn }: KnobControlProps): JSX.Element | null {
  const isWrong = useSignal(false);
  const shared = { name: knob.name, 'aria-label': label, disabled: locked };
  if (knob.kind === 'number')
    return (
      <input
        {...shared}
        type="number"
        min={knob.minimum}
        max={knob.maximum}
        step={knob.integer ? 1 : 'any'}
        value={typeof value === 'number' ? value : ''}
        onChange={({ currentTarget: { validity, value: text, valueAsNumber } }) => {
          if (validity.valid) onTurn(text === '' ? undefined : valueAsNumber);
        }}
      />
    );
  if (knob.kind === 'text')
    return (
      <input
        {...shared}
        type="text"
        value={typeof value === 'string' ? value : ''}
        onChange={({ currentTarget: { value: text } }) =>
          onTurn(text === '' && knob.optional ? undefined : text)
        }
      />
    );
  return (
    <textarea
      {...shared}
      aria-label={`${label}, as JSON`}
      aria-invalid={isWrong.value}
      rows={2}
      placeholder="JSON"
      value={value === undefined ? '' : JSON.stringify(value)}
      onChange={({ currentTarget: { value: text } }) => {
        try {
          onTurn(text.trim() === '' ? undefined : JSON.parse(text));
          isWrong.value = false;
        } catch {
          isWrong.value = true;
        }
      }}
    />
  );
}
