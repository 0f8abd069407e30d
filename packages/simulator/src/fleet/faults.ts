import type { IterationLaw } from '../profiles/engine-profile.ts';

/**
 * Something that goes wrong with a replica, by its number among all that the fleet has started, from a second until another:
 * `slow` makes its iterations `factor` times as long, `lost` takes its KV and lets it start cold, `late_scrape` leaves its
 * metrics as they were.
 */
export interface FleetFault {
  readonly kind: 'slow' | 'lost' | 'late_scrape';
  readonly replica: number;
  readonly fromS: number;
  readonly untilS: number;
  readonly factor?: number;
}

/** The fault of a kind that a replica has at a time. */
export function faultAt(
  faults: readonly FleetFault[],
  kind: FleetFault['kind'],
  replica: number,
  seconds: number,
): FleetFault | undefined {
  return faults.find(
    (fault) =>
      fault.kind === kind && fault.replica === replica && fault.fromS <= seconds && seconds < fault.untilS,
  );
}

/** A law whose iterations take `factor` times as long. */
export function slowedLaw(law: IterationLaw, factor: number): IterationLaw {
  const slowed = (fields: object): object =>
    Object.fromEntries(
      Object.entries(fields).map(([name, value]) => {
        if (name === 'manySequences') return [name, slowed(value)];
        return [name, /(?:Us|Ns)$/.test(name) ? factor * value : value];
      }),
    );
  return factor === 1 ? law : (slowed(law) as IterationLaw);
}
