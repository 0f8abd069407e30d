// Stands in the page for the catalog of @servegym/profiles: profiles are fetched when they are needed.
import type { EngineProfile } from '@servegym/simulator';

/** A profile in `profiles/index.json`. */
export interface ProfileEntry {
  readonly name: string;
  readonly model: string;
  readonly gpu: string;
  /** GPUs of an engine. */
  readonly count: number;
  readonly weights: readonly string[];
  readonly status: EngineProfile['status'];
}

/** A profile's file. */
export interface KeptProfile {
  readonly profile: EngineProfile;
  readonly listUsdPerHour: number;
}

const fetched = new Map<string, EngineProfile>();

/** Fetches a file beside this module. @throws Error that says which and why */
export async function fetchJson<T>(path: string): Promise<T> {
  const response = await fetch(new URL(path, import.meta.url));
  if (!response.ok) throw new Error(`Expected ${response.url}, got status ${response.status}`);
  return response.json();
}

/**
 * Fetches profiles that were not fetched before.
 * @param price of a GPU: that of the list, or that of the profile, which environments charge
 */
export async function fetchProfiles(
  names: readonly string[],
  price: 'list' | 'own' = 'list',
): Promise<EngineProfile[]> {
  return Promise.all(
    names.map(async (name) => {
      const known = fetched.get(name);
      if (known !== undefined) return known;
      const { profile, listUsdPerHour } = await fetchJson<KeptProfile>(`./profiles/${name}.json`);
      const usdPerHour = price === 'list' ? listUsdPerHour : profile.gpu.usdPerHour;
      const made = { ...profile, gpu: { ...profile.gpu, usdPerHour } };
      fetched.set(name, made);
      return made;
    }),
  );
}

export function listProfiles(): EngineProfile[] {
  return [...fetched.values()];
}

export function findProfile(name: string): EngineProfile {
  return fetched.get(name)!;
}
