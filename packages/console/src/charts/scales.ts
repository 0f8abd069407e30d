/** Values that a scale runs over. */
export type Domain = readonly [low: number, high: number];

/** A domain from zero that holds all values, with room above them. */
export function fromZero(values: readonly number[]): Domain {
  return [0, Math.max(...values, 1e-9) * 1.1];
}

/** A domain of a logarithmic scale that holds all values, which are above zero. */
export function aroundLog(values: readonly number[]): Domain {
  return [Math.min(...values) / 1.3, Math.max(...values) * 1.3];
}

/** Round values over a domain, about four steps of them. */
export function roundTicks([low, high]: Domain): number[] {
  const step = roundStep((high - low || 1) / 4);
  const ticks: number[] = [];
  for (let k = Math.ceil(low / step); k * step <= high; k++) ticks.push(Number((k * step).toPrecision(12)));
  return ticks;
}

/** A step of 1, 2 or 5 times a power of ten, at least `least`. */
function roundStep(least: number): number {
  const power = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].map((lead) => lead * power).find((step) => step >= least * (1 - 1e-9))!;
}

/** The powers of ten over a domain, or 1, 2 and 5 times them where there are few. */
export function decades([low, high]: Domain): number[] {
  const leads = high / low > 500 ? [1] : [1, 2, 5];
  const marks: number[] = [];
  for (let power = 10 ** Math.floor(Math.log10(low)); power <= high; power *= 10) {
    for (const lead of leads) if (power * lead >= low && power * lead <= high) marks.push(power * lead);
  }
  return marks;
}
