import { z } from 'zod';

/** Transform that brings a figure to about 0 to 1: itself or log(1 + itself), over `divisor`. */
export interface ObservationScale {
  readonly transform: 'linear' | 'log1p';
  readonly divisor: number;
}

/** A figure with a heavy tail: 1 at `typicalMost`. */
export const heavy = (typicalMost: number): ObservationScale => ({
  transform: 'log1p',
  divisor: Number(Math.log1p(typicalMost).toPrecision(4)),
});

export const linear = (typicalMost: number): ObservationScale => ({
  transform: 'linear',
  divisor: typicalMost,
});

export const count = z.int().min(0);
export const amount = z.number().min(0);
export const fraction = z.number().min(0).max(1);

/** A field of an observation, with the scale that a normaliser uses. `GET /schema` has it as `normalization`. */
export const figure = <Schema extends z.ZodNumber>(
  schema: Schema,
  normalization: ObservationScale,
  description: string,
) => schema.meta({ description, normalization });
