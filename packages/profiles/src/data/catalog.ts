import type { EngineProfile } from '@servegym/simulator';
import { inOrder } from '../schema/parse-engine-profile.ts';
import { ProfileError } from '../schema/read-json.ts';
import generated from './generated-profiles.json' with { type: 'json' };
import lasting from './lasting-profiles.json' with { type: 'json' };

/** Profiles whose coefficients stay: results of environments count with them. */
const LASTING: ReadonlyMap<string, unknown> = new Map(lasting.map((profile) => [profile.name, profile]));

/** Profiles that `benchmarks/run.ts generated-profiles` makes again when what they are made from gets better. */
const GENERATED: ReadonlyMap<string, unknown> = new Map(
  generated.profiles.map((entry) => [entry.name, entry]),
);

const NAMES: readonly string[] = [...LASTING.keys(), ...GENERATED.keys()].sort();

/** Profiles in use: an environment asks at every reset. */
const FOUND = new Map<string, EngineProfile>();

/** The profiles that come with the simulator, by name. */
export function listProfiles(): EngineProfile[] {
  return NAMES.map(findProfile);
}

/** The profiles whose coefficients are the same in later versions, by name. */
export function listLastingProfiles(): EngineProfile[] {
  return [...LASTING.keys()].sort().map(findProfile);
}

/** The profile of this name. A test checks them all. @throws {ProfileError} that names the closest ones. */
export function findProfile(name: string): EngineProfile {
  const found = FOUND.get(name);
  if (found !== undefined) return found;
  const entry = LASTING.get(name) ?? expandProfile(GENERATED.get(name), generated.shared);
  if (entry !== undefined) {
    const profile = inOrder(entry as EngineProfile);
    FOUND.set(name, profile);
    return profile;
  }
  const closest = NAMES.map((known) => ({ known, likeness: likeness(known, name.toLowerCase()) }))
    .sort((a, b) => b.likeness - a.likeness)
    .slice(0, 3)
    .map(({ known }) => known);
  const expected = `the name of a profile (the closest: ${closest.join(', ')})`;
  throw new ProfileError('PROFILE_UNKNOWN', 'profiles', expected, JSON.stringify(name));
}

/** Share of the letter pairs that two names have in common (Dice's coefficient). */
function likeness(...names: readonly [string, string]): number {
  const [a, b] = names.map((name) => new Set(Array.from(name.slice(1), (letter, i) => name[i] + letter)));
  return (2 * [...a].filter((pair) => b.has(pair)).length) / (a.size + b.size);
}

/** Shorter JSON than this is not worth a reference. */
const LEAST_LENGTH = 12;

/**
 * Profiles in which `{"$": i}` stands for the i-th of the values that several of them have in common, and
 * `{"@": [i, ...]}` for an object with these values under the keys that the i-th shared value lists.
 */
export function compactProfiles(profiles: readonly { readonly name: string }[]) {
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
