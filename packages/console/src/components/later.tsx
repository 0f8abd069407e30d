import { signal, useSignal } from '@preact/signals';
import type { ComponentType, JSX } from 'preact';
import { useEffect } from 'preact/hooks';

/** Parts that are shown and whose code is not here yet. */
export const partsToCome = signal(0);

/** A component whose code is fetched when it is shown for the first time. Until then nothing is shown. */
export function lazy<Props extends object = object>(
  load: () => Promise<ComponentType<Props>>,
): (props: Props) => JSX.Element | null {
  let loaded: ComponentType<Props> | undefined;
  return function Lazy(props) {
    const isReady = useSignal(loaded !== undefined);
    const isBroken = useSignal(false);
    useEffect(() => {
      if (loaded) return;
      partsToCome.value++;
      load()
        .then(
          (component) => {
            loaded = component;
            isReady.value = true;
          },
          () => {
            isBroken.value = true;
          },
        )
        .finally(() => {
          partsToCome.value--;
        });
    }, [isReady, isBroken]);
    if (isBroken.value)
      return <p class="fine">This part could not be fetched. Reload the page to try again.</p>;
    const Loaded = isReady.value ? loaded : undefined;
    return Loaded ? <Loaded {...props} /> : null;
  };
}

/** Adds style sheets that come with a part of the page which is fetched later. */
export function addStyles(css: string): void {
  const element = document.createElement('style');
  element.textContent = css;
  document.head.append(element);
}

/** Parts of the page that not every visit needs: each is fetched when it is first shown. */
export const LaterScoreCard = lazy(async () => (await import('../later/score-card.tsx')).ScoreCard);
export const LaterRunSentence = lazy(async () => (await import('../later/run-sentence.tsx')).RunSentence);
export const LaterRunCards = lazy(async () => (await import('../later/run-cards.tsx')).RunCards);
export const LaterOpenedNote = lazy(async () => (await import('../later/opened-note.tsx')).OpenedNote);
export const LaterMemoryUse = lazy(async () => (await import('../later/memory-use.tsx')).MemoryUse);
export const LaterTokenDialog = lazy(async () => (await import('../later/token-dialog.tsx')).TokenDialog);
export const LaterWhyPanel = lazy(async () => (await import('../later/why-panel.tsx')).WhyPanel);
export const LaterOptionsMenu = lazy(async () => (await import('../later/options-menu.tsx')).OptionsMenu);
export const LaterFigures = lazy(async () => (await import('../later/any-environment.tsx')).AnyFigures);
export const LaterAnyCharts = lazy(async () => (await import('../later/any-environment.tsx')).AnyCharts);
export const LaterAnyMoreCharts = lazy(
  async () => (await import('../later/any-environment.tsx')).AnyMoreCharts,
);
export const LaterOtherCharts = lazy(async () => (await import('../later/any-environment.tsx')).OtherCharts);
export const LaterDrawer = lazy(async () => (await import('../panels/drawer.tsx')).Drawer);
export const LaterTour = lazy(async () => (await import('../later/tour.tsx')).Tour);
export const LaterField = lazy(async () => (await import('../later/plain-field.tsx')).PlainField);
