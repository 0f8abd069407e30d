import type { JSX } from 'preact';
import type { Knob } from '../api/action-schema.ts';
import { LazyField } from '../components/lazy.tsx';
import { KNOB_GUIDE, knobText, valueText } from './knob-guide.ts';
import { nearestStop, sliderStops } from './knob-values.ts';

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
  switch (knob.kind) {
    case 'range': {
      const stops = sliderStops(knob, KNOB_GUIDE[knob.name]?.doubling === true);
      const index = nearestStop(stops, Number(value ?? knob.minimum));
      return (
        <input
          type="range"
          name={knob.name}
          aria-label={label}
          aria-valuetext={knobText(knob, value)}
          min={0}
          max={stops.length - 1}
          step={1}
          value={index}
          disabled={locked}
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
            type="checkbox"
            role="switch"
            aria-checked={value === true}
            name={knob.name}
            aria-label={label}
            checked={value === true}
            disabled={locked}
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
      <select
        name={knob.name}
        aria-label={label}
        disabled={locked}
        value={values.indexOf(value)}
        onChange={(event) => onTurn(values[Number(event.currentTarget.value)])}
      >
        {canBeAbsent && <option value={-1}>–</option>}
        {texts.map((text, i) => (
          <option key={text} value={i} disabled={masked.includes(values[i])}>
            {text}
          </option>
        ))}
      </select>
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
