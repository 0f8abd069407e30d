import { signal } from '@preact/signals';

/** The step that the tour is at; `undefined` while nobody takes it. */
export const tourStep = signal<number | undefined>(undefined);
