import { useComputed } from '@preact/signals';
import type { JSX } from 'preact';
import { addStyles } from '../components/add-styles.ts';
import { useConsole } from '../components/console-context.ts';
import { Figure } from '../components/figure.tsx';
import { amount, count, words } from '../components/format.ts';
import styles from '../styles/figures.css?inline';
import { NO_QUANTITY } from './charts.ts';

addStyles(styles);

/** Longer texts are cut; the raw answer has them whole. */
const LONGEST_TEXT = 60;

/** What an environment of which nothing is known observes now: each field with its name. */
export function FiguresPanel(): JSX.Element | null {
  const state = useConsole();
  const { value: names } = useComputed(() =>
    Object.keys(state.shown.value?.observation ?? {})
      .filter((name) => name !== 'metadata' && name !== 'reward' && name !== 'done')
      .join('\n'),
  );
  if (names === '') return null;
  return (
    <section class="panel figures" aria-label="The environment now">
      <div>
        {names.split('\n').map((name) => (
          <ObservedField key={name} name={name} />
        ))}
      </div>
    </section>
  );
}

function ObservedField({ name }: { name: string }): JSX.Element {
  const state = useConsole();
  const text = useComputed(() => valueText(name, state.shown.value?.observation[name]));
  return <Figure label={words(name)} field={name} figure={text} />;
}

function valueText(name: string, value: unknown): string {
  if (typeof value === 'number') {
    if (NO_QUANTITY.test(name)) return String(Math.trunc(value));
    return Number.isInteger(value) ? count(value) : amount(value);
  }
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? '–');
  return text.length > LONGEST_TEXT ? `${text.slice(0, LONGEST_TEXT)}…` : text;
}
