import a10040gbLlama38b from './catalog/a100-40gb-llama-3-8b.json' with { type: 'json' };
import a10040gbLlama38bTp2 from './catalog/a100-40gb-llama-3-8b-tp2.json' with { type: 'json' };
import a10040gbMistral7b from './catalog/a100-40gb-mistral-7b.json' with { type: 'json' };
import a10040gbMistral7bTp2 from './catalog/a100-40gb-mistral-7b-tp2.json' with { type: 'json' };
import a10040gbMistral7bTp4 from './catalog/a100-40gb-mistral-7b-tp4.json' with { type: 'json' };
import gh20096gbLlama38b from './catalog/gh200-96gb-llama-3-8b.json' with { type: 'json' };
import h10080gbLlama38b from './catalog/h100-80gb-llama-3-8b.json' with { type: 'json' };
import h10080gbLlama38bTp2 from './catalog/h100-80gb-llama-3-8b-tp2.json' with { type: 'json' };
import h10080gbLlama38bTp4 from './catalog/h100-80gb-llama-3-8b-tp4.json' with { type: 'json' };
import h10080gbMistral7b from './catalog/h100-80gb-mistral-7b.json' with { type: 'json' };
import h10080gbMistral7bTp2 from './catalog/h100-80gb-mistral-7b-tp2.json' with { type: 'json' };
import h10080gbMistral7bTp4 from './catalog/h100-80gb-mistral-7b-tp4.json' with { type: 'json' };
import type { EngineProfile } from './engine-profile.ts';
import { checkEngineProfile } from './parse-engine-profile.ts';
import { ProfileError } from './profile-error.ts';

const CATALOG: ReadonlyMap<string, unknown> = new Map(
  [
    a10040gbLlama38bTp2,
    a10040gbLlama38b,
    a10040gbMistral7bTp2,
    a10040gbMistral7bTp4,
    a10040gbMistral7b,
    gh20096gbLlama38b,
    h10080gbLlama38bTp2,
    h10080gbLlama38bTp4,
    h10080gbLlama38b,
    h10080gbMistral7bTp2,
    h10080gbMistral7bTp4,
    h10080gbMistral7b,
  ].map((profile) => [profile.name, profile]),
);

/** The profiles that come with the simulator, by name. */
export function listProfiles(): EngineProfile[] {
  return [...CATALOG.keys()].sort().map(findProfile);
}

/** The profile of this name. @throws {ProfileError} that names the closest ones. */
export function findProfile(name: string): EngineProfile {
  const profile = CATALOG.get(name);
  if (profile !== undefined) return checkEngineProfile(profile, name);
  const closest = [...CATALOG.keys()]
    .map((known) => ({ known, likeness: likeness(known, name.toLowerCase()) }))
    .sort((a, b) => b.likeness - a.likeness)
    .slice(0, 3)
    .map(({ known }) => known);
  throw new ProfileError(
    'PROFILE_UNKNOWN',
    'profiles',
    '',
    `the name of a profile (the closest: ${closest.join(', ')})`,
    JSON.stringify(name),
  );
}

/** Share of the letter pairs that two names have in common (Dice's coefficient). */
function likeness(a: string, b: string): number {
  const pairs = letterPairs(a);
  const shared = [...letterPairs(b)].filter((pair) => pairs.has(pair)).length;
  return (2 * shared) / (pairs.size + letterPairs(b).size);
}

function letterPairs(text: string): Set<string> {
  return new Set(Array.from({ length: Math.max(0, text.length - 1) }, (_, i) => text.slice(i, i + 2)));
}
