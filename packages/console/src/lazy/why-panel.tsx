import { useComputed } from '@preact/signals';
import type { JSX } from 'preact';
import type { Knob } from '../api/action-schema.ts';
import type { Fields } from '../api/wire.ts';
import { signed, words } from '../components/format.ts';
import { Meter } from '../components/stage.tsx';
import { KNOB_GUIDE, valueText } from '../knobs/knob-values.ts';
import { useConsole } from '../state/console-state.ts';
import type { Frame } from '../state/frame.ts';

/** More alternatives than this are not read. */
const MOST_ALTERNATIVES = 6;
/** Plans whose values differ by less than this look alike. */
const LEAST_RANGE = 0.1;

/** An action that a planner weighed, and what it expected of it. */
interface Alternative {
  readonly action: Fields;
  readonly value: number;
  readonly isChosen: boolean;
}

/** Why the planner chose what it chose: the alternatives that it weighed, the best first, with their values. */
export function WhyPanel(): JSX.Element | null {
  const state = useConsole();
  const { value: alternatives } = useComputed(() => alternativesOf(state.shown.value));
  if (alternatives.length === 0) return null;
  const values = alternatives.map(({ value }) => value);
  const best = Math.max(...values);
  const range = Math.max(best - Math.min(...values), LEAST_RANGE);
  const chosen = alternatives.find(({ isChosen }) => isChosen) ?? alternatives[0];
  return (
    <section class="why" aria-label="Why this choice">
      <h3 data-tip="What the planner expects of each plan that it weighed: rewards to come, by its simulator">
        Why this choice
      </h3>
      <ol>
        {alternatives.map(({ action, value, isChosen }) => (
          <li key={JSON.stringify(action)} class={isChosen ? 'chosen' : ''}>
            <span class="plan">
              {isChosen ? 'Chosen' : differences(state.knobs.value, action, chosen.action)}
            </span>
            <span class="worth">{isChosen ? signed(value) : signed(value - chosen.value)}</span>
            <Meter share={1 - (0.96 * (best - value)) / range} />
          </li>
        ))}
      </ol>
    </section>
  );
}

function alternativesOf(frame: Frame | undefined): Alternative[] {
  const list = frame?.explanation?.alternatives;
  if (!Array.isArray(list)) return [];
  const chosen = JSON.stringify(sortedEntries(frame!.action ?? {}));
  const byAction = new Map<string, Alternative>();
  for (const { action, value } of list as Fields[]) {
    if (typeof action !== 'object' || action === null || typeof value !== 'number') continue;
    const key = JSON.stringify(sortedEntries(action as Fields));
    const known = byAction.get(key);
    if (!known || known.value < value)
      byAction.set(key, { action: action as Fields, value, isChosen: key === chosen });
  }
  return [...byAction.values()].filter(({ isChosen }, i) => i < MOST_ALTERNATIVES || isChosen);
}

function sortedEntries(action: Fields): [string, unknown][] {
  return Object.entries(action).sort(([a], [b]) => (a < b ? -1 : 1));
}

/** The knobs in which a plan differs from the chosen one. */
function differences(knobs: readonly Knob[], action: Fields, chosen: Fields): string {
  const texts = knobs
    .filter(({ name }) => action[name] !== chosen[name])
    .map(
      (knob) => `${KNOB_GUIDE[knob.name]?.label ?? words(knob.name)} ${valueText(knob, action[knob.name])}`,
    );
  return texts.join(', ') || 'The same, then other plans';
}
