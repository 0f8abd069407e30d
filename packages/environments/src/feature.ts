import { portableMath } from '@servegym/simulator';
import { z } from 'zod';

/**
 * One number that a learner sees of a step, as data: `GET /schema` has the list of an environment as `features` of its
 * observation, so that learners in any language compute the same numbers.
 *
 * From the figure x: `equals`, then (x + plus) / (over + over_plus) / divisor, then `transform`, then `memory`.
 */
export interface Feature {
  readonly name: string;
  /** True of a number that means something else on another server: policies that run many do not see it. */
  readonly one_server?: boolean;
  /** Path of the figure in the observation, or, after `action.`, in the action in force. True counts as 1. */
  readonly of: string;
  /** The figure is 1 where it has this value, else 0. */
  readonly equals?: string | number;
  /** Default 0. */
  readonly plus?: number;
  /** Path of a figure to divide by. */
  readonly over?: string;
  /** Added to that figure. Default 0. */
  readonly over_plus?: number;
  /** Default 1. */
  readonly divisor?: number;
  readonly transform?: 'log' | 'log1p' | 'log2';
  /**
   * Part that the past of the episode has, by the running average of `weight`, which begins with the first number:
   * - `average`: the average, this window included;
   * - `departure`: the number less the average, this window included;
   * - `filled`: the number, or, where it is missing, the average;
   * - `change`: the number less that of the window before, which is 0 at first;
   * - `kept`: log(1 + windows for which the figure has been the same).
   */
  readonly memory?: 'average' | 'departure' | 'filled' | 'change' | 'kept';
  /** Weight of a new window in the average. */
  readonly weight?: number;
  /** Value of the figure that means that nothing was measured: the average stays, and is 0 before the first number. */
  readonly missing?: number;
}

/** Transform that brings a figure to about 0 to 1: itself or log(1 + itself), over `divisor`. */
export interface ObservationScale {
  readonly transform: 'linear' | 'log1p';
  readonly divisor: number;
}

/** A figure of an observation as data. */
interface Figure {
  /** True for whole numbers. */
  readonly whole?: boolean;
  readonly max?: number;
  /** Value that a normaliser maps to about 1: of a figure with a heavy tail, whose logarithm is taken, or of any other. */
  readonly heavy?: number;
  readonly linear?: number;
  readonly description: string;
}

export const count = z.int().min(0);
export const amount = z.number().min(0);

/**
 * Fields of an observation, none of them negative, with the scale that a normaliser uses. `GET /schema` has it as
 * `normalization`.
 * @param ofClass class of requests that stands for `{class}` in descriptions
 */
export function figures<Name extends string>(
  data: Readonly<Record<Name, Figure>>,
  ofClass = '',
): Record<Name, z.ZodNumber> {
  const fields = Object.entries<Figure>(data).map(
    ([name, { whole, max, heavy, linear = 1, description }]) => {
      const normalization: ObservationScale =
        heavy === undefined
          ? { transform: 'linear', divisor: linear }
          : { transform: 'log1p', divisor: Number(portableMath.log1p(heavy).toPrecision(4)) };
      const least = whole ? count : amount;
      const schema = max === undefined ? least : least.max(max);
      return [name, schema.meta({ description: description.replace('{class}', ofClass), normalization })];
    },
  );
  return Object.fromEntries(fields) as Record<Name, z.ZodNumber>;
}

/**
 * A knob of an action, with the values that a learner chooses from: about evenly spaced on a logarithmic scale where the knob
 * acts in proportion. `GET /schema` has them as `bins`; those `bins_by` `ratio` are near by their logarithm.
 */
export function knob<Schema extends z.ZodType>(
  schema: Schema,
  bins: readonly unknown[],
  description: string,
  nearest?: 'ratio',
): Schema {
  return schema.meta({ description, bins, ...(nearest && { bins_by: nearest }) });
}

/** The values of each knob of an action that a learner chooses from. */
export function binsOf<Shape extends z.ZodRawShape>({ shape }: z.ZodObject<Shape>) {
  const bins = Object.entries(shape).map(([name, schema]) => [name, (schema as z.ZodType).meta()?.bins]);
  return Object.fromEntries(bins) as { readonly [Name in keyof Shape]: readonly z.output<Shape[Name]>[] };
}
