import { signal } from '@preact/signals';

const STORAGE_KEY = 'servegym.toured';

/** The step that the tour is at; `undefined` while nobody takes it. */
export const tourStep = signal<number | undefined>(undefined);

/** Whether this browser has seen the tour; where nothing can be kept, it is offered each time. */
export const hasToured = signal(readToured());

export function endTour(): void {
  tourStep.value = undefined;
  hasToured.value = true;
  try {
    localStorage.setItem(STORAGE_KEY, 'yes');
  } catch {
    // Storage is closed to embedded pages in some browsers; the offer then comes back.
  }
}

function readToured(): boolean {
  try {
    return localStorage.getItem(STORAGE_KEY) !== null;
  } catch {
    return false;
  }
}
