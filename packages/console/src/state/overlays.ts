import { signal } from '@preact/signals';

/** The panels that open beside the page. */
export const PANELS = {
  history: 'Runs',
  share: 'Share',
  leaderboard: 'Leaderboard',
  developers: 'Developers',
  readme: 'Readme',
  help: 'Keys and terms',
} as const;
export type PanelName = keyof typeof PANELS;

/** The panel that is open. */
export const openPanel = signal<PanelName | undefined>(undefined);

/** The step that the tour is at; `undefined` while nobody takes it. */
export const tourStep = signal<number | undefined>(undefined);

/** The tour moves on with the windows of the episode, as on a first visit. */
export const isGuided = signal(false);
