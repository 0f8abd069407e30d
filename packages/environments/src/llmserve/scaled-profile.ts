import type { EngineProfile, IterationLaw, WeightVariant } from '@servegym/simulator';

/**
 * Factors of the kinds of times of a law: of launches, reading weights and context, and drafts; of compute; of decoding
 * sequences.
 */
export type TimeFactors = readonly [memory: number, compute: number, sequences: number];

/** A profile with the times of its laws and drafts multiplied. */
export function scaledProfile(profile: EngineProfile, times: TimeFactors): EngineProfile {
  const [memory] = times;
  const weights = Object.entries(profile.weights).map(([precision, variant]): [string, WeightVariant] => [
    precision,
    { ...variant, law: scaledLaw(variant.law, times) },
  ]);
  const { speculation } = profile;
  return {
    ...profile,
    weights: Object.fromEntries(weights),
    speculation: speculation && {
      ...speculation,
      draftBaseUs: memory * speculation.draftBaseUs,
      draftPerTokenUs: memory * speculation.draftPerTokenUs,
      draftPerContextTokenNs: memory * speculation.draftPerContextTokenNs,
    },
  };
}

function scaledLaw(law: IterationLaw, [memory, compute, sequences]: TimeFactors): IterationLaw {
  const { experts, manySequences, perContextTokenBesidePrefillNs, prefillLaunchUs } = law;
  return {
    ...law,
    baseUs: memory * law.baseUs,
    weightReadUs: memory * law.weightReadUs,
    perDecodeSequenceUs: sequences * law.perDecodeSequenceUs,
    perContextTokenNs: memory * law.perContextTokenNs,
    perTokenUs: compute * law.perTokenUs,
    perPrefillAttentionNs: compute * law.perPrefillAttentionNs,
    ...(experts && { experts: { ...experts, readUs: memory * experts.readUs } }),
    ...(manySequences && {
      manySequences: { ...manySequences, perContextTokenNs: memory * manySequences.perContextTokenNs },
    }),
    ...(perContextTokenBesidePrefillNs !== undefined && {
      perContextTokenBesidePrefillNs: memory * perContextTokenBesidePrefillNs,
    }),
    ...(prefillLaunchUs !== undefined && { prefillLaunchUs: memory * prefillLaunchUs }),
  };
}
