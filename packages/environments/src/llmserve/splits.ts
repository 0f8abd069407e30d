/** Seeds of the traffic, split so that nothing is tuned on what it is judged by. Both ends belong to the split. */
export const SEED_SPLITS = {
  train: { first: 0, last: 999_999 },
  validation: { first: 1_000_000, last: 1_099_999 },
  test: { first: 2_000_000, last: 2_099_999 },
} as const;

export type SeedSplit = keyof typeof SEED_SPLITS;

/** The first seeds of a split. */
export function firstSeeds(split: SeedSplit, count: number): number[] {
  return Array.from({ length: count }, (_, i) => SEED_SPLITS[split].first + i);
}

/** The split that a seed belongs to; `undefined` when it belongs to none. */
export function splitOfSeed(seed: number): SeedSplit | undefined {
  return (Object.keys(SEED_SPLITS) as SeedSplit[]).find(
    (split) => seed >= SEED_SPLITS[split].first && seed <= SEED_SPLITS[split].last,
  );
}
