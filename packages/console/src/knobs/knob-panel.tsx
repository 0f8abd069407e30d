import { useComputed } from '@preact/signals';
import type { JSX } from 'preact';
import type { Knob } from '../api/action-schema.ts';
import { Button, Select } from '../components/controls.tsx';
import { tip } from '../components/figure.tsx';
import { words } from '../components/format.ts';
import { LazyField, LazyWhyPanel } from '../components/lazy.tsx';
import { useConsole } from '../state/console-state.ts';
import { BY_HAND, playerName, RECORDED } from '../state/run.ts';
import {
  isMasked,
  KNOB_GUIDE,
  knobText,
  maskedValues,
  nearestStop,
  sliderStops,
  valueText,
} from './knob-values.ts';

/** The knobs of the server: turned here by hand, or shown as the policy turns them. */
export function KnobPanel(): JSX.Element {
  const state = useConsole();
  const run = state.run.value;
  const byHand = state.driver.value === BY_HAND;
  const isPast = state.position.value !== null;
  const { value: isExplained } = useComputed(() => state.shown.value?.explanation !== undefined);
  /** Takes the knobs in the window that is shown, where the server can go back to it. */
  const takeOver = async () => {
    if (isPast && state.abilities.value.episodes) await state.branch();
    state.chooseDriver(BY_HAND);
  };
  const policy = state.policies.value.find(({ name }) => name === state.driver.value);
  return (
    <section class="panel knobs stack" aria-label="Knobs">
      <header class="panel-head row wrap">
        <h2>Knobs</h2>
        {isPast ? (
          <p class="fine fill">As they stood in window {state.position}</p>
        ) : byHand ? (
          <p class="fine fill">You turn them: they hold for the next window.</p>
        ) : (
          <p class="fine fill" {...tip(policy?.description)}>
            {state.driver.value === RECORDED ? 'As recorded:' : 'Turned by'} {playerName(state, run)}
          </p>
        )}
        {!byHand && <Button look="small" text="Take over" onClick={() => void takeOver()} />}
      </header>
      {state.schemas.value && state.knobs.value.length === 0 && (
        <p class="fine">The action of this environment has no fields: there is nothing to set.</p>
      )}
      <div class="knob-list stack fill">
        {state.knobs.value.map((knob) => (
          <KnobRow key={knob.name} knob={knob} locked={!byHand || isPast} />
        ))}
      </div>
      {isExplained && <LazyWhyPanel />}
    </section>
  );
}

function KnobRow({ knob, locked }: { knob: Knob; locked: boolean }): JSX.Element {
  const guide = KNOB_GUIDE[knob.name];
  const state = useConsole();
  const { value } = useComputed(() => state.knobValues.value[knob.name]);
  const { value: masked } = useComputed(() => isMasked(knob, state.chosenTask.value, state.shown.value));
  const { value: shut } = useComputed(() =>
    knob.kind === 'choice' ? maskedValues(knob, knob.values, state.shown.value) : [],
  );
  const label = guide?.label ?? words(knob.name);
  return (
    <div class={masked ? 'knob masked' : 'knob'}>
      <div class="knob-head row baseline between gap">
        <span class="bold" {...tip(knob.description)}>
          {label}
        </span>
        {knob.kind === 'range' && <output class="knob-value small">{knobText(knob, value)}</output>}
      </div>
      <KnobControl
        knob={knob}
        label={label}
        value={value}
        locked={locked || masked}
        masked={shut}
        onTurn={(next) => state.turn(knob.name, next)}
      />
      {masked ? (
        <p class="trade fine">Masked: this task holds it at its default.</p>
      ) : guide ? (
        <ul class="trade fine" aria-label={`What ${label} buys and costs`}>
          <li class="buys">{guide.buys}</li>
          <li class="costs">{guide.costs}</li>
        </ul>
      ) : (
        <p class="trade fine">{knob.description}</p>
      )}
      {shut.length > 0 && !masked && (
        <p class="trade fine">Masked now: {shut.map((one) => String(one)).join(', ')}</p>
      )}
    </div>
  );
}

export interface KnobControlProps {
  readonly knob: Knob;
  readonly label: string;
  readonly value: unknown;
  readonly locked: boolean;
  /** Values of a choice that cannot be taken now. */
  readonly masked?: readonly unknown[];
  /** An optional field may be cleared, to be left out. */
  readonly clearable?: boolean;
  readonly onTurn: (value: unknown) => void;
}

/** The control by which a person sets one field. */
export function KnobControl(props: KnobControlProps): JSX.Element {
  const { knob, label, value, locked, onTurn } = props;
  const shared = { name: knob.name, 'aria-label': label, disabled: locked };
  switch (knob.kind) {
    case 'range': {
      const stops = sliderStops(knob, KNOB_GUIDE[knob.name]?.doubling === true);
      const index = nearestStop(stops, Number(value ?? knob.minimum));
      return (
        <input
          {...shared}
          type="range"
          aria-valuetext={knobText(knob, value)}
          min={0}
          max={stops.length - 1}
          step={1}
          value={index}
          style={{ '--filled': `${(index / (stops.length - 1)) * 100}%` }}
          onInput={(event) => onTurn(stops[event.currentTarget.valueAsNumber])}
        />
      );
    }
    case 'choice':
      return <ChoiceControl {...props} values={knob.values} />;
    case 'switch':
      return (
        <label class="switch">
          <input
            {...shared}
            type="checkbox"
            role="switch"
            aria-checked={value === true}
            checked={value === true}
            onChange={(event) => onTurn(event.currentTarget.checked)}
          />
          <span aria-hidden="true">{value === true ? 'On' : 'Off'}</span>
        </label>
      );
    default:
      return <LazyField {...props} />;
  }
}

/** A few short values as segments, more of them as a list. */
function ChoiceControl({
  knob,
  label,
  value,
  locked,
  masked = [],
  clearable = false,
  onTurn,
  values,
}: KnobControlProps & { values: readonly unknown[] }): JSX.Element {
  const canBeAbsent = clearable && knob.optional && knob.initial === undefined;
  const texts = values.map((option) => valueText(knob, option));
  if (canBeAbsent || values.length > 6 || texts.join('').length > 24) {
    return (
      <Select
        name={knob.name}
        aria-label={label}
        disabled={locked}
        value={values.indexOf(value)}
        options={[
          ...(canBeAbsent ? [{ value: -1, text: '–' }] : []),
          ...texts.map((text, i) => ({ value: i, text, disabled: masked.includes(values[i]) })),
        ]}
        onChoose={(index) => onTurn(values[Number(index)])}
      />
    );
  }
  return (
    <div class="segments" role="radiogroup" aria-label={label}>
      {texts.map((text, i) => (
        <label key={text} class={masked.includes(values[i]) ? 'masked' : ''}>
          <input
            type="radio"
            name={knob.name}
            value={text}
            checked={values[i] === value}
            disabled={locked || masked.includes(values[i])}
            onChange={() => onTurn(values[i])}
          />
          <span>{text}</span>
        </label>
      ))}
    </div>
  );
}
