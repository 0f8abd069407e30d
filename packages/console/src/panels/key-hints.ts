import { RUN_PLACES } from '../state/run.ts';

/** A key of the page and what it does, in words. */
export interface KeyHint {
  readonly key: string;
  readonly does: string;
}

export const KEYS: readonly KeyHint[] = [
  { key: 'Space', does: 'Play and pause' },
  { key: '→', does: 'One window on' },
  { key: '←', does: 'One window back' },
  { key: 'Home', does: 'To the start of the episode' },
  { key: 'End', does: 'Back to now' },
  { key: `1 … ${RUN_PLACES}`, does: 'Show the server of this run' },
  { key: '?', does: 'This list' },
];
