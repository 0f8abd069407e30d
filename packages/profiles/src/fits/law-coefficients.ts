import type { IterationLaw } from '@servegym/simulator';

/** The coefficients of a law, in the order in which fits keep them. `experts` and `manySequences` stand for what they take. */
export const LAW_COEFFICIENTS = [
  'baseUs',
  'weightReadUs',
  'experts',
  'perTokenUs',
  'perDecodeSequenceUs',
  'perContextTokenNs',
  'perPrefillAttentionNs',
  'manySequences',
  'perContextTokenBesidePrefillNs',
  'prefillLaunchUs',
] as const satisfies readonly Exclude<
  keyof IterationLaw,
  'launchBound' | 'tokenFactors' | 'sequenceFactors'
>[];

export type LawCoefficient = (typeof LAW_COEFFICIENTS)[number];

/** The value of a coefficient; `undefined` for one that the law does without. */
export function coefficientOf(law: IterationLaw, name: LawCoefficient): number | undefined {
  if (name === 'experts') return law.experts?.readUs;
  return name === 'manySequences' ? law.manySequences?.perContextTokenNs : law[name];
}

/** The coefficients that a law has. */
export function coefficientsOf(law: IterationLaw): LawCoefficient[] {
  return LAW_COEFFICIENTS.filter((name) => coefficientOf(law, name) !== undefined);
}

/** The law with each of its coefficients changed, and its factors kept. */
export function mapLaw(
  law: IterationLaw,
  change: (value: number, coefficient: LawCoefficient) => number,
): IterationLaw {
  const { experts, tokenFactors, manySequences, sequenceFactors } = law;
  const { perContextTokenBesidePrefillNs, prefillLaunchUs } = law;
  return {
    baseUs: change(law.baseUs, 'baseUs'),
    ...(law.launchBound !== undefined && { launchBound: law.launchBound }),
    weightReadUs: change(law.weightReadUs, 'weightReadUs'),
    ...(experts && { experts: { ...experts, readUs: change(experts.readUs, 'experts') } }),
    perTokenUs: change(law.perTokenUs, 'perTokenUs'),
    ...(tokenFactors && { tokenFactors }),
    perDecodeSequenceUs: change(law.perDecodeSequenceUs, 'perDecodeSequenceUs'),
    perContextTokenNs: change(law.perContextTokenNs, 'perContextTokenNs'),
    ...(manySequences && {
      manySequences: {
        above: manySequences.above,
        perContextTokenNs: change(manySequences.perContextTokenNs, 'manySequences'),
      },
    }),
    ...(sequenceFactors && { sequenceFactors }),
    ...(perContextTokenBesidePrefillNs !== undefined && {
      perContextTokenBesidePrefillNs: change(
        perContextTokenBesidePrefillNs,
        'perContextTokenBesidePrefillNs',
      ),
    }),
    ...(prefillLaunchUs !== undefined && { prefillLaunchUs: change(prefillLaunchUs, 'prefillLaunchUs') }),
    perPrefillAttentionNs: change(law.perPrefillAttentionNs, 'perPrefillAttentionNs'),
  };
}

/** The law with coefficients of five digits, as profiles keep them. */
export function roundLaw(law: IterationLaw): IterationLaw {
  return mapLaw(law, (value) => Number(value.toPrecision(5)));
}
