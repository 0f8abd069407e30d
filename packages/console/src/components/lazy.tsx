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
    const state = useSignal<'coming' | 'here' | 'broken'>(loaded ? 'here' : 'coming');
    useEffect(() => {
      if (loaded) return;
      partsToCome.value++;
      load()
        .then(
          (component) => {
            loaded = component;
            state.value = 'here';
          },
          () => {
            state.value = 'broken';
          },
        )
        .finally(() => {
          partsToCome.value--;
        });
    }, [state]);
    if (state.value === 'broken')
      return <p class="fine">This part could not be fetched. Reload the page to try again.</p>;
    const Loaded = state.value === 'here' ? loaded : undefined;
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
const environment = () => import('../lazy/any-environment.tsx');
const notes = () => import('../lazy/notes.tsx');
const options = () => import('../lazy/options-menu.tsx');
const runCards = () => import('../lazy/run-cards.tsx');
export const LazyScoreCard = lazy(async () => (await import('../lazy/score-card.tsx')).ScoreCard);
export const LazyRunSentence = lazy(async () => (await runCards()).RunSentence);
export const LazyRunCards = lazy(async () => (await runCards()).RunCards);
export const LazyOpenedNote = lazy(async () => (await notes()).OpenedNote);
export const LazyMemoryUse = lazy(async () => (await notes()).MemoryUse);
export const LazyTokenDialog = lazy(async () => (await notes()).TokenDialog);
export const LazyWhyPanel = lazy(async () => (await notes()).WhyPanel);
export const LazyOptionsMenu = lazy(async () => (await options()).OptionsMenu);
export const LazyField = lazy(async () => (await options()).PlainField);
export const LazyFigures = lazy(async () => (await environment()).AnyFigures);
export const LazyAnyCharts = lazy(async () => (await environment()).AnyCharts);
export const LazyAnyMoreCharts = lazy(async () => (await environment()).AnyMoreCharts);
export const LazyOtherCharts = lazy(async () => (await environment()).OtherCharts);
export const LazyDrawer = lazy(async () => (await import('../panels/drawer.tsx')).Drawer);
