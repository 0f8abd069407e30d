import { useComputed } from '@preact/signals';
import type { JSX } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import type { Knob } from '../api/action-schema.ts';
import type { Fields } from '../api/wire.ts';
import { Button, Icon } from '../components/controls.tsx';
import { amount, count, signed, words } from '../components/format.ts';
import { addStyles } from '../components/lazy.tsx';
import { Meter, Observed } from '../components/stage.tsx';
import { KNOB_GUIDE, valueText } from '../knobs/knob-values.ts';
import { useConsole } from '../state/console-state.ts';
import { type Frame, observed } from '../state/frame.ts';
import styles from '../styles/notes.css?inline';

addStyles(styles);

/** Tells of an episode that came from a link or a file whether it is the one that was recorded. */
export function OpenedNote(): JSX.Element | null {
  const opened = useConsole().opened.value;
  if (!opened) return null;
  const { verified, recorded, played, windows, run } = opened;
  const isWhole = run.frames.value[windows]?.done === true;
  const isPlayedOn = run.played.value - 1 > windows;
  const isOther = recorded !== undefined && recorded !== played;
  return (
    <p class={`opened row ${verified === false ? 'strained' : 'calm'}`} role="status">
      {verified === false ? <Icon name="strained" /> : <Icon name="calm" />}
      <span>
        <b>
          Recorded episode{run.author && ` by ${run.author}`}, {count(windows)} windows.
        </b>{' '}
        {verified === true && 'Replayed bit for bit: its digest is the recorded one.'}
        {verified === false &&
          `It did not come out as recorded: ${isOther ? `it was played on version ${recorded}, this is ${played}.` : 'its actions or its digest were changed.'}`}
        {verified === null && 'It carries no digest to check it against.'}
        {isPlayedOn && ` The windows after ${count(windows)} are not recorded: they are played on this page.`}
        {!isWhole &&
          !isPlayedOn &&
          ' The recording stops before the episode is over. Take over or choose a policy to play on.'}
      </span>
    </p>
  );
}

const MEMORY_FIELD = 'gpu_memory_used_gb';

/** Memory in use beside the limit of the task, and the cost of having gone over it, where the server tells only totals. */
export function MemoryUse(): JSX.Element {
  const state = useConsole();
  const task = state.chosenTask.value;
  const limit = task?.memory_limit_gb;
  const effect = task?.memory_limit_effect;
  const { value: excess } = useComputed(() => {
    const shown = state.shown.value;
    if (!shown || typeof limit !== 'number') return undefined;
    const uses = state.frames.value
      .slice(1, shown.index + 1)
      .map((frame) => (observed(frame, MEMORY_FIELD) ?? 0) - limit);
    const highest = Math.max(0, ...uses);
    if (highest === 0) return undefined;
    const isOver = uses[uses.length - 1] > 0;
    return `${amount(highest)}\u202fGB over the limit ${isOver ? 'of the task' : 'earlier in this episode'}.`;
  });
  return (
    <>
      <Observed
        optional
        label="GPU memory"
        field={MEMORY_FIELD}
        format={amount}
        unit={typeof limit === 'number' ? `of ${amount(limit)} GB` : 'GB'}
      />
      {excess && (
        <p class="over-limit small muted strained gap">
          <Icon name="strained" />
          <span>
            <b>{excess}</b> {typeof effect === 'string' && effect}
          </span>
        </p>
      )}
    </>
  );
}

export function TokenDialog(): JSX.Element | null {
  const state = useConsole();
  const dialog = useRef<HTMLDialogElement>(null);
  const isNeeded = state.needsToken.value;
  useEffect(() => {
    if (isNeeded && !dialog.current?.open) dialog.current?.showModal();
  }, [isNeeded]);
  if (!isNeeded) return null;
  return (
    <dialog ref={dialog} class="token" aria-label="Token" onCancel={(event) => event.preventDefault()}>
      <form
        class="grid"
        onSubmit={(event) => {
          event.preventDefault();
          state.enterToken(String(new FormData(event.currentTarget).get('token') ?? '').trim());
        }}
      >
        <h2>This server wants a token</h2>
        <p class="fine">Its operator has set one. It is kept until this tab is closed.</p>
        <div class="gap">
          <input
            class="fill"
            type="password"
            name="token"
            aria-label="Token"
            autocomplete="off"
            required
            pattern="\s*\S+\s*"
            title="A text without spaces"
          />
          <Button look="primary" text="Enter" type="submit" />
        </div>
      </form>
    </dialog>
  );
}

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
          <li key={JSON.stringify(action)}>
            <span class={isChosen ? 'bold' : 'muted'}>
              {isChosen ? 'Chosen' : differences(state.knobs.value, action, chosen.action)}
            </span>
            <span class={isChosen ? 'bold' : ''}>
              {isChosen ? signed(value) : signed(value - chosen.value)}
            </span>
            <Meter bars={{ [isChosen ? 'accent' : 'muted']: 1 - (0.96 * (best - value)) / range }} />
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
