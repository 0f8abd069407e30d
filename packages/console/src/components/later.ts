import { lazy } from './lazy.tsx';

/** Parts of the page that not every visit needs: each is fetched when it is first shown. */
export const LaterScoreCard = lazy(async () => (await import('../later/score-card.tsx')).ScoreCard);
export const LaterRunCards = lazy(async () => (await import('../later/run-cards.tsx')).RunCards);
export const LaterOpenedNote = lazy(async () => (await import('../later/opened-note.tsx')).OpenedNote);
export const LaterMemoryUse = lazy(async () => (await import('../later/memory-use.tsx')).MemoryUse);
export const LaterTokenDialog = lazy(async () => (await import('../later/token-dialog.tsx')).TokenDialog);
export const LaterWhyPanel = lazy(async () => (await import('../later/why-panel.tsx')).WhyPanel);
export const LaterOptionsMenu = lazy(async () => (await import('../later/options-menu.tsx')).OptionsMenu);
export const LaterFigures = lazy(
  async () => (await import('../any-environment/figures-panel.tsx')).FiguresPanel,
);
export const LaterAnyCharts = lazy(async () => (await import('../any-environment/any-charts.tsx')).AnyCharts);
export const LaterOtherCharts = lazy(
  async () => (await import('../any-environment/any-charts.tsx')).OtherCharts,
);
export const LaterDrawer = lazy(async () => (await import('../panels/drawer.tsx')).Drawer);
export const LaterTour = lazy(async () => (await import('../tour/tour.tsx')).Tour);
export const LaterField = lazy(async () => (await import('../later/plain-field.tsx')).PlainField);
