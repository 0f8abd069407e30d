import type { ReadonlySignal } from '@preact/signals';
import type { JSX } from 'preact';
import { useConsole } from '../state/console-state.ts';
import { fieldNamed } from '../state/frame.ts';
import { tip } from './tooltip.tsx';

/** A text that stays, or one that changes by itself without a new rendering of what is around it. */
type Text = string | ReadonlySignal<string>;

interface FigureProps {
  readonly label: string;
  readonly figure: Text;
  readonly unit?: Text;
  /** The observation field whose definition shows on hover. */
  readonly field?: string;
  readonly definition?: string;
  readonly large?: boolean;
}

/** A number with its name, unit and definition. */
export function Figure({ label, figure, unit, field, definition, large }: FigureProps): JSX.Element {
  const state = useConsole();
  const frame = state.latest.peek();
  const name = field && ((frame && fieldNamed(frame.observation, field)) ?? field);
  const text = definition ?? (name ? state.definitions.value[name] : undefined);
  return (
    <dl class={large ? 'figure large' : 'figure'} {...tip(text)}>
      <dt>{label}</dt>
      <dd>
        <span class="value">{figure}</span>
        {unit && <span class="unit">{unit}</span>}
      </dd>
    </dl>
  );
}
