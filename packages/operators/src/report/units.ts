import type { Unit } from './page.ts';

const grouped = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });

/** How numbers are written on an axis, and wherever a page shows them. */
export const UNITS = {
  plain: String,
  /** In two or three digits: `1,240`, `38.2`, `0.84`, `0.00012`. */
  amount(value) {
    const size = Math.abs(value);
    if (size >= 100) return grouped.format(value);
    if (size >= 10) return value.toFixed(1);
    if (size === 0) return '0';
    return size < 0.01 ? value.toPrecision(2) : value.toFixed(2);
  },
  /** `1,240` */
  count: (value) => grouped.format(value),
  /** US dollars with the digits that a small price needs: `$0.0021`, `−$20.00`. */
  dollars(value): string {
    if (value === 0) return '$0';
    if (value < 0) return `−${UNITS.dollars(-value)}`;
    return value < 0.1 ? `$${value.toPrecision(2)}` : `$${value.toFixed(2)}`;
  },
  /** A round latency, of ms: `100 ms`, `2 s`. */
  latency: (ms) =>
    ms < 1000 ? `${Number(ms.toPrecision(2))}\u202fms` : `${grouped.format(ms / 1000)}\u202fs`,
  /** A share of one: `87 %`. */
  percent: (share) => `${Math.round(share * 100)}\u202f%`,
} satisfies Readonly<Record<Unit, (value: number) => string>>;

/** Values that a scale runs over. */
export type Domain = readonly [low: number, high: number];

/** Round values over a domain, about four steps of 1, 2 or 5 times a power of ten. */
export function roundTicks([low, high]: Domain): number[] {
  const least = (high - low || 1) / 4;
  const power = powerOfTen(least);
  const step = [1, 2, 5, 10].map((lead) => lead * power).find((each) => each >= least * (1 - 1e-9))!;
  const ticks: number[] = [];
  for (let k = Math.ceil(low / step); k * step <= high; k++) ticks.push(Number((k * step).toPrecision(12)));
  return ticks;
}

/** The powers of ten over a domain, or 1, 2 and 5 times them where there are few. */
export function decades([low, high]: Domain): number[] {
  const leads = high / low > 500 ? [1] : [1, 2, 5];
  const marks: number[] = [];
  for (let power = powerOfTen(low); power <= high; power *= 10)
    marks.push(...leads.map((lead) => lead * power).filter((mark) => mark >= low && mark <= high));
  return marks;
}

/** The power of ten at a value or below it. */
const powerOfTen = (value: number): number => Number(`1e${value.toExponential().split('e')[1]}`);
