import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import type { KnobControlProps } from '../knobs/knob-control.tsx';

/** A field to type into: numbers without bounds, texts, and what else is JSON. */
export function PlainField(props: KnobControlProps): JSX.Element | null {
  const { knob, label, value, locked, onTurn } = props;
  switch (knob.kind) {
    case 'number':
      return (
        <input
          type="number"
          name={knob.name}
          aria-label={label}
          min={knob.minimum}
          max={knob.maximum}
          step={knob.integer ? 1 : 'any'}
          value={typeof value === 'number' ? value : ''}
          disabled={locked}
          onChange={({ currentTarget: { validity, value: text, valueAsNumber } }) => {
            if (validity.valid) onTurn(text === '' ? undefined : valueAsNumber);
          }}
        />
      );
    case 'text':
      return (
        <input
          type="text"
          name={knob.name}
          aria-label={label}
          value={typeof value === 'string' ? value : ''}
          disabled={locked}
          onChange={({ currentTarget: { value: text } }) =>
            onTurn(text === '' && knob.optional ? undefined : text)
          }
        />
      );
    case 'json':
      return <JsonField {...props} />;
    default:
      return null;
  }
}

function JsonField({ knob, label, value, locked, onTurn }: KnobControlProps): JSX.Element {
  const isWrong = useSignal(false);
  return (
    <textarea
      name={knob.name}
      aria-label={`${label}, as JSON`}
      aria-invalid={isWrong.value}
      rows={2}
      placeholder="JSON"
      value={value === undefined ? '' : JSON.stringify(value)}
      disabled={locked}
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
