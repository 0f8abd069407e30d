import { effect, useComputed } from '@preact/signals';
import type { JSX } from 'preact';
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import { Button } from '../components/controls.tsx';
import { addStyles } from '../components/lazy.tsx';
import { type ConsoleState, useConsole } from '../state/console-state.ts';
import { isGuided, tourStep } from '../state/page-signals.ts';
import { BY_HAND } from '../state/run.ts';
import styles from '../styles/tour.css?inline';
import tours from './tours.json' with { type: 'json' };

addStyles(styles);

/** The way through the page for a newcomer. The first of the selectors `at` that is on the page is lit. */
function stopsOf(state: ConsoleState) {
  const kind = state.isServer.value ? 'server' : state.isFleet.value ? 'fleet' : 'other';
  const { stage, knobs, charts, end } = tours[kind];
  return [
    { at: '.stage, .figures', title: stage[0], text: stage[1] },
    { at: '.knobs', title: knobs[0], text: knobs[1] },
    {
      at: '.run-line, .run-cards',
      title: 'Who turns them',
      text: 'A policy does, until you choose “By hand” or press “Take over”. Compare puts up to four of them on the very same requests.',
    },
    { at: '.charts', title: 'What came of it', text: charts },
    {
      at: '.scrubber',
      title: 'Wind back, try again',
      text: 'Drag to any window and play on from there. At the end the server grades the episode.',
    },
    { at: '.score, .knobs', title: 'Now you', text: end },
  ];
}

function endTour(): void {
  tourStep.value = undefined;
  isGuided.value = false;
}

/** Starts the episode of the page again, by hand. */
async function takeKnobs(state: ConsoleState): Promise<void> {
  endTour();
  state.chooseDriver(BY_HAND);
  await state.restart();
  document.querySelector<HTMLElement>('.knobs :is(input, select):enabled')?.focus();
}

/** Moves a guided tour on as the episode is played: each stop has an equal part of its windows. Answers how to stop. */
function followEpisode(state: ConsoleState): () => void {
  const { newest, windows, areOver, episode } = state;
  const guided = episode.peek();
  const begun = newest.peek();
  const last = stopsOf(state).length - 1;
  return effect(() => {
    if (!isGuided.value) return;
    if (episode.value !== guided) return endTour();
    const share = (newest.value - begun) / ((windows.value ?? Number.POSITIVE_INFINITY) - begun);
    const due = areOver.value ? last : Math.min(last - 1, Math.floor(share * last));
    if (tourStep.peek()! < due) tourStep.value = due;
  });
}

/** A short walk over the page, one stop at a time. */
export function Tour(): JSX.Element | null {
  const state = useConsole();
  const step = tourStep.value;
  useEffect(() => followEpisode(state), [state]);
  const dialog = useRef<HTMLDialogElement>(null);
  const { value: stops } = useComputed(() => stopsOf(state));
  const stop = step === undefined ? undefined : stops[step];
  useLayoutEffect(() => {
    const element = dialog.current;
    if (!stop || !element) return;
    if (!element.open) element.show();
    const target = document.querySelector<HTMLElement>(stop.at);
    target?.classList.add('lit');
    target?.scrollIntoView({ block: 'nearest' });
    place(element, target);
    const isElsewhere = document.activeElement !== document.body && !element.contains(document.activeElement);
    if (!isGuided.peek() || !isElsewhere)
      element.querySelector<HTMLElement>('.primary')?.focus({ preventScroll: true });
    return () => target?.classList.remove('lit');
  }, [stop?.title]);
  if (step === undefined || !stop) return null;
  const isLast = step === stops.length - 1;
  return (
    <dialog
      ref={dialog}
      class="tour"
      aria-label={`Tour, ${step + 1} of ${stops.length}: ${stop.title}`}
      onKeyDown={(event) => event.key === 'Escape' && endTour()}
    >
      <div aria-live={isGuided.value ? 'polite' : 'off'}>
        <h2>{stop.title}</h2>
        <p>{stop.text}</p>
      </div>
      <footer class="row">
        <span class="fine">
          {step + 1} of {stops.length}
        </span>
        <Button look="small" text={isLast ? 'Done' : 'Skip'} onClick={endTour} />
        <Button
          look="small primary"
          text={isLast ? 'Take the knobs' : 'Next'}
          onClick={() => {
            if (isLast) void takeKnobs(state);
            else tourStep.value = step + 1;
          }}
        />
      </footer>
    </dialog>
  );
}

/** Puts the bubble beside what it is about, or into a corner where that fills the window. */
function place(bubble: HTMLElement, target: HTMLElement | null): void {
  const { width, height } = bubble.getBoundingClientRect();
  const box = target?.getBoundingClientRect();
  if (!box) return;
  const [left, top] = [innerWidth - width - 10, innerHeight - height - 10];
  const x = Math.max(10, Math.min(left, box.left));
  const y = Math.max(10, Math.min(top, box.top));
  const sides = [
    [box.right + 12, y],
    [x, box.bottom + 10],
    [x, box.top - height - 10],
    [box.left - width - 12, y],
  ];
  const [across, down] = sides.find(([x, y]) => x >= 10 && y >= 10 && x <= left && y <= top) ?? [left, top];
  bubble.style.translate = `${across}px ${down}px`;
}
