import type { EngineProfile } from '@servegym/simulator';
import { checkEngineProfile } from '../schema/parse-engine-profile.ts';
import { ProfileError } from '../schema/profile-error.ts';
import { expandProfile } from './compact-profiles.ts';
import generated from './generated-profiles.json' with { type: 'json' };
import a1024gbMistral7b from './profiles/a10-24gb-mistral-7b.json' with { type: 'json' };
import a10040gbLlama38b from './profiles/a100-40gb-llama-3-8b.json' with { type: 'json' };
import a10040gbLlama38bTp2 from './profiles/a100-40gb-llama-3-8b-tp2.json' with { type: 'json' };
import a10040gbMistral7b from './profiles/a100-40gb-mistral-7b.json' with { type: 'json' };
import a10040gbMistral7bTp2 from './profiles/a100-40gb-mistral-7b-tp2.json' with { type: 'json' };
import a10040gbMistral7bTp4 from './profiles/a100-40gb-mistral-7b-tp4.json' with { type: 'json' };
import a10080gbLlama38b from './profiles/a100-80gb-llama-3-8b.json' with { type: 'json' };
import a10080gbLlama370bTp4 from './profiles/a100-80gb-llama-3-70b-tp4.json' with { type: 'json' };
import a10080gbMistral7b from './profiles/a100-80gb-mistral-7b.json' with { type: 'json' };
import a10080gbQwen257b from './profiles/a100-80gb-qwen2.5-7b.json' with { type: 'json' };
import b200180gbLlama38b from './profiles/b200-180gb-llama-3-8b.json' with { type: 'json' };
import b200180gbLlama370bTp2 from './profiles/b200-180gb-llama-3-70b-tp2.json' with { type: 'json' };
import gh20096gbLlama38b from './profiles/gh200-96gb-llama-3-8b.json' with { type: 'json' };
import gh20096gbMistral7b from './profiles/gh200-96gb-mistral-7b.json' with { type: 'json' };
import gh20096gbQwen257b from './profiles/gh200-96gb-qwen2.5-7b.json' with { type: 'json' };
import h10080gbLlama27b from './profiles/h100-80gb-llama-2-7b.json' with { type: 'json' };
import h10080gbLlama270bTp4 from './profiles/h100-80gb-llama-2-70b-tp4.json' with { type: 'json' };
import h10080gbLlama38b from './profiles/h100-80gb-llama-3-8b.json' with { type: 'json' };
import h10080gbLlama38bTp2 from './profiles/h100-80gb-llama-3-8b-tp2.json' with { type: 'json' };
import h10080gbLlama38bTp4 from './profiles/h100-80gb-llama-3-8b-tp4.json' with { type: 'json' };
import h10080gbLlama370bTp4 from './profiles/h100-80gb-llama-3-70b-tp4.json' with { type: 'json' };
import h10080gbLlama370bTp8 from './profiles/h100-80gb-llama-3-70b-tp8.json' with { type: 'json' };
import h10080gbLlama4ScoutTp2 from './profiles/h100-80gb-llama-4-scout-tp2.json' with { type: 'json' };
import h10080gbMistral7b from './profiles/h100-80gb-mistral-7b.json' with { type: 'json' };
import h10080gbMistral7bTp2 from './profiles/h100-80gb-mistral-7b-tp2.json' with { type: 'json' };
import h10080gbMistral7bTp4 from './profiles/h100-80gb-mistral-7b-tp4.json' with { type: 'json' };
import h10080gbMistralNemo12b from './profiles/h100-80gb-mistral-nemo-12b.json' with { type: 'json' };
import h10080gbMistralNemo12bTp2 from './profiles/h100-80gb-mistral-nemo-12b-tp2.json' with { type: 'json' };
import h10080gbMixtral8x7bTp2 from './profiles/h100-80gb-mixtral-8x7b-tp2.json' with { type: 'json' };
import h10080gbQwen257b from './profiles/h100-80gb-qwen2.5-7b.json' with { type: 'json' };
import h10080gbQwen2532bTp2 from './profiles/h100-80gb-qwen2.5-32b-tp2.json' with { type: 'json' };
import h10080gbQwen330bA3b from './profiles/h100-80gb-qwen3-30b-a3b.json' with { type: 'json' };
import h10080gbYi34bTp2 from './profiles/h100-80gb-yi-34b-tp2.json' with { type: 'json' };
import h200141gbLlama38b from './profiles/h200-141gb-llama-3-8b.json' with { type: 'json' };
import h200141gbLlama370bTp2 from './profiles/h200-141gb-llama-3-70b-tp2.json' with { type: 'json' };
import h200141gbLlama370bTp4 from './profiles/h200-141gb-llama-3-70b-tp4.json' with { type: 'json' };
import l424gbLlama38b from './profiles/l4-24gb-llama-3-8b.json' with { type: 'json' };
import l40s48gbLlama38b from './profiles/l40s-48gb-llama-3-8b.json' with { type: 'json' };
import l40s48gbLlama370bTp4 from './profiles/l40s-48gb-llama-3-70b-tp4.json' with { type: 'json' };
import l40s48gbMistral7b from './profiles/l40s-48gb-mistral-7b.json' with { type: 'json' };
import l40s48gbQwen257b from './profiles/l40s-48gb-qwen2.5-7b.json' with { type: 'json' };
import rtx409024gbLlama38b from './profiles/rtx4090-24gb-llama-3-8b.json' with { type: 'json' };
import rtx409024gbMistral7b from './profiles/rtx4090-24gb-mistral-7b.json' with { type: 'json' };
import rtx409024gbQwen257b from './profiles/rtx4090-24gb-qwen2.5-7b.json' with { type: 'json' };

/** Profiles whose coefficients stay: results of environments count with them. */
const LASTING: ReadonlyMap<string, unknown> = new Map(
  [
    a10040gbLlama38bTp2,
    a10040gbLlama38b,
    a10040gbMistral7bTp2,
    a10040gbMistral7bTp4,
    a10040gbMistral7b,
    a10080gbLlama370bTp4,
    a10080gbLlama38b,
    a10080gbMistral7b,
    a10080gbQwen257b,
    b200180gbLlama370bTp2,
    b200180gbLlama38b,
    gh20096gbLlama38b,
    gh20096gbMistral7b,
    gh20096gbQwen257b,
    h10080gbLlama27b,
    h10080gbLlama370bTp4,
    h10080gbLlama370bTp8,
    h10080gbLlama38bTp2,
    h10080gbLlama38bTp4,
    h10080gbLlama38b,
    h10080gbLlama4ScoutTp2,
    h10080gbMistral7bTp2,
    h10080gbMistral7bTp4,
    h10080gbMistral7b,
    h10080gbMistralNemo12bTp2,
    h10080gbMistralNemo12b,
    h10080gbQwen257b,
    h10080gbYi34bTp2,
    h200141gbLlama370bTp2,
    h200141gbLlama370bTp4,
    h200141gbLlama38b,
    l40s48gbLlama370bTp4,
    l40s48gbLlama38b,
    l40s48gbMistral7b,
    l40s48gbQwen257b,
    rtx409024gbLlama38b,
    rtx409024gbMistral7b,
    rtx409024gbQwen257b,
    h10080gbMixtral8x7bTp2,
    h10080gbQwen2532bTp2,
    h10080gbQwen330bA3b,
    h10080gbLlama270bTp4,
    l424gbLlama38b,
    a1024gbMistral7b,
  ].map((profile) => [profile.name, profile]),
);

/** Profiles that `maintenance/generate-profiles.ts` makes again when what they are made from gets better. */
const GENERATED: ReadonlyMap<string, unknown> = new Map(
  generated.profiles.map((entry) => [entry.name, entry]),
);

/** Profiles in use: an environment asks at every reset. */
const CHECKED = new Map<string, EngineProfile>();

/** The profiles that come with the simulator, by name. */
export function listProfiles(): EngineProfile[] {
  return [...LASTING.keys(), ...GENERATED.keys()].sort().map(findProfile);
}

/** The profiles whose coefficients are the same in later versions, by name. */
export function listLastingProfiles(): EngineProfile[] {
  return [...LASTING.keys()].sort().map(findProfile);
}

/** The profile of this name. @throws {ProfileError} that names the closest ones. */
export function findProfile(name: string): EngineProfile {
  const checked = CHECKED.get(name);
  if (checked !== undefined) return checked;
  const entry = LASTING.get(name) ?? expandProfile(GENERATED.get(name), generated.shared);
  if (entry !== undefined) {
    const profile = checkEngineProfile(entry, name);
    CHECKED.set(name, profile);
    return profile;
  }
  const closest = [...LASTING.keys(), ...GENERATED.keys()]
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
