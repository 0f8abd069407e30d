/**
 * Profiles in which `{"$": i}` stands for the i-th of the values that several of them have in common, and
 * `{"@": [i, ...]}` for an object with these values under the keys that the i-th shared value lists.
 */
export interface CompactProfiles {
  readonly shared: readonly unknown[];
  readonly profiles: readonly { readonly name: string }[];
}

/** Shorter JSON than this is not worth a reference. */
const LEAST_LENGTH = 12;

export function compactProfiles(profiles: readonly { readonly name: string }[]): CompactProfiles {
  const counts = new Map<string, number>();
  const count = (value: unknown): void => {
    const text = JSON.stringify(value);
    const seen = counts.get(text) ?? 0;
    counts.set(text, seen + 1);
    // Parts of what is shared as a whole are not shared once more.
    if (seen === 0 && typeof value === 'object' && value !== null) Object.values(value).forEach(count);
  };
  profiles.forEach(count);
  const shared: unknown[] = [];
  const places = new Map<string, number>();
  const compact = (value: unknown): unknown => {
    const text = JSON.stringify(value);
    if (text.length >= LEAST_LENGTH && counts.get(text)! > 1) {
      const place = places.get(text) ?? shared.push(value) - 1;
      places.set(text, place);
      return { $: place };
    }
    if (Array.isArray(value)) return value.map(compact);
    if (typeof value !== 'object' || value === null) return value;
    const keys = JSON.stringify(Object.keys(value));
    const place = places.get(keys) ?? shared.push(Object.keys(value)) - 1;
    places.set(keys, place);
    return { '@': [place, ...Object.values(value).map(compact)] };
  };
  const entries = profiles.map((profile) => ({
    name: profile.name,
    ...Object.fromEntries(Object.entries(profile).map(([key, part]) => [key, compact(part)])),
  }));
  return { shared, profiles: entries };
}

/** One of the profiles with its references resolved. */
export function expandProfile(entry: unknown, shared: readonly unknown[]): unknown {
  if (Array.isArray(entry)) return entry.map((part) => expandProfile(part, shared));
  if (typeof entry !== 'object' || entry === null) return entry;
  if ('$' in entry) return shared[entry.$ as number];
  if ('@' in entry) {
    const [place, ...values] = entry['@'] as [number, ...unknown[]];
    const keys = shared[place] as readonly string[];
    return Object.fromEntries(keys.map((key, i) => [key, expandProfile(values[i], shared)]));
  }
  return Object.fromEntries(Object.entries(entry).map(([key, part]) => [key, expandProfile(part, shared)]));
}
