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

/** The fields of a law in the order of written profiles. */
const FIELDS = [
  'baseUs',
  'launchBound',
  'weightReadUs',
  'experts',
  'perTokenUs',
  'tokenFactors',
  'perDecodeSequenceUs',
  'perContextTokenNs',
  'manySequences',
  'sequenceFactors',
  'perContextTokenBesidePrefillNs',
  'prefillLaunchUs',
  'perPrefillAttentionNs',
] as const satisfies readonly (keyof IterationLaw)[];

/** The law with each of its coefficients changed, and its factors kept. */
export function mapLaw(
  law: IterationLaw,
  change: (value: number, coefficient: LawCoefficient) => number,
): IterationLaw {
  const changed: Partial<Record<keyof IterationLaw, unknown>> = {};
  for (const field of FIELDS) {
    if (law[field] === undefined) continue;
    if (field === 'launchBound' || field === 'tokenFactors' || field === 'sequenceFactors') {
      changed[field] = law[field];
      continue;
    }
    const value = change(coefficientOf(law, field)!, field);
    if (field === 'experts') changed.experts = { ...law.experts, readUs: value };
    else if (field === 'manySequences')
      changed.manySequences = { ...law.manySequences, perContextTokenNs: value };
    else changed[field] = value;
  }
  return changed as unknown as IterationLaw;
}

/** The law with coefficients of five digits, as profiles keep them. */
export function roundLaw(law: IterationLaw): IterationLaw {
  return mapLaw(law, (value) => Number(value.toPrecision(5)));
}
