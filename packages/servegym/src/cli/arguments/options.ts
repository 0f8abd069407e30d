import { InvalidArgumentError } from 'commander';

/** An argument parser for a whole number in a range, ends included. */
export function wholeNumber(low: number, high: number): (text: string) => number {
  return (text) => {
    const value = /^[+-]?\d+$/.test(text) ? Number(text) : Number.NaN;
    if (value >= low && value <= high) return value;
    throw new InvalidArgumentError(`Expected a whole number from ${low} to ${high}, got \`${text}\`.`);
  };
}

/** An argument parser for a number above `low` and not above `high`. */
export function numberAbove(low: number, high = Number.MAX_VALUE): (text: string) => number {
  return (text) => {
    const value = text.trim() === '' ? Number.NaN : Number(text);
    if (value > low && value <= high) return value;
    const most = high === Number.MAX_VALUE ? '' : ` and at most ${high}`;
    throw new InvalidArgumentError(`Expected a number above ${low}${most}, got \`${text}\`.`);
  };
}

/** An argument parser for a number in a range, ends included. */
export function numberFrom(low: number, high: number): (text: string) => number {
  return (text) => {
    const value = text.trim() === '' ? Number.NaN : Number(text);
    if (value >= low && value <= high) return value;
    throw new InvalidArgumentError(`Expected a number from ${low} to ${high}, got \`${text}\`.`);
  };
}
