import type { IterationLaw } from '../profiles/engine-profile.ts';

/** The coefficients of a law, in the order in which fits keep them. */
export const LAW_COEFFICIENTS = [
  'baseUs',
  'weightReadUs',
  'perTokenUs',
  'perDecodeSequenceUs',
  'perContextTokenNs',
  'perPrefillAttentionNs',
] as const satisfies readonly (keyof IterationLaw)[];

export type LawCoefficient = (typeof LAW_COEFFICIENTS)[number];

/** A law from one value for each coefficient. */
export function lawFrom(value: (coefficient: LawCoefficient) => number): IterationLaw {
  return Object.fromEntries(LAW_COEFFICIENTS.map((name) => [name, value(name)])) as unknown as IterationLaw;
}

/** The law with coefficients of five digits, as profiles keep them. */
export function roundLaw(law: IterationLaw): IterationLaw {
  return lawFrom((name) => Number(law[name].toPrecision(5)));
}
