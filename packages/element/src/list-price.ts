import { priceOf } from '@servegym/profiles';
import type { EngineProfile } from '@servegym/simulator';

/** List price of a GPU, USD an hour, and its source; `undefined` where none is known. */
export function listPrice(gpu: string) {
  return priceOf(gpu, { own: new Map(), isSpot: false, useTable: true });
}

/** A profile at the list price of its GPU, as the page has it. */
export function atListPrice(profile: EngineProfile): EngineProfile {
  const { usdPerHour } = listPrice(profile.gpu.name) ?? profile.gpu;
  return { ...profile, gpu: { ...profile.gpu, usdPerHour } };
}
