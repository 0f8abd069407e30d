import { type ReadonlySignal, useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { useConsole } from '../state/console-state.ts';
import { fieldNamed } from '../state/frame.ts';
import { listen } from './listen.ts';

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
      <dt class="fine">{label}</dt>
      <dd>
        <span class="value">{figure}</span>
        {unit && <span class="unit">{unit}</span>}
      </dd>
    </dl>
  );
}

/** Attributes that give an element a definition: shown on hover and told to screen readers. */
export function tip(text: string | undefined): { 'data-tip'?: string; 'aria-description'?: string } {
  return text ? { 'data-tip': text, 'aria-description': text } : {};
}

interface Shown {
  readonly text: string;
  readonly x: number;
  readonly below: number;
  readonly above: number;
}

/** The one bubble of the page; it shows the `data-tip` of what the pointer or the focus is on. */
export function Tooltip(): JSX.Element {
  const shown = useSignal<Shown | undefined>(undefined);
  const bubble = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const show = ({ target }: Event) => {
      const owner = target instanceof Element ? target.closest<HTMLElement>('[data-tip]') : null;
      if (!owner) {
        shown.value = undefined;
        return;
      }
      const { left, width, top, bottom } = owner.getBoundingClientRect();
      shown.value = { text: owner.dataset.tip!, x: left + width / 2, below: bottom, above: top };
    };
    const hide = () => {
      shown.value = undefined;
    };
    const listeners = { pointerover: show, focusin: show, focusout: hide, scroll: hide, keydown: hide };
    return listen(listeners, { capture: true, passive: true });
  }, [shown]);
  useEffect(() => {
    const element = bubble.current;
    if (!element || !shown.value) return;
    const { x, below, above } = shown.value;
    const { width, height } = element.getBoundingClientRect();
    const left = Math.max(8, Math.min(innerWidth - width - 8, x - width / 2));
    const top = below + 8 + height > innerHeight ? above - height - 8 : below + 8;
    element.style.transform = `translate(${left}px, ${Math.max(8, top)}px)`;
  });
  return (
    <div ref={bubble} class="tooltip" hidden={!shown.value} aria-hidden="true">
      {shown.value?.text}
    </div>
  );
}
