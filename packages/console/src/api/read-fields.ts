import type { Fields } from './wire.ts';

// Readers of answers whose shape is not known: what is of another type counts as left out.

export function number(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isFinite(value) ? value : undefined;
}

/** A number; 0 where there is none. */
export function amountOf(value: unknown): number {
  return number(value) ?? 0;
}

export function text(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

export function fields(value: unknown): Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : {};
}

export function list(value: unknown): Fields[] {
  return Array.isArray(value) ? value.map(fields) : [];
}

export function numbers(value: unknown): Record<string, number> {
  return Object.fromEntries(
    Object.entries(fields(value)).filter(([, part]) => number(part) !== undefined),
  ) as Record<string, number>;
}

type Reader = (value: unknown) => unknown;
/** What a table of readers gives. */
type Read<Readers extends Record<string, Reader>> = {
  readonly [Name in keyof Readers]: ReturnType<Readers[Name]>;
};

/** A reader of an object, field by field: that of `kvBlocks` stands in `kv_blocks`. */
export function record<Readers extends Record<string, Reader>>(readers: Readers) {
  const named = Object.entries(readers).map(
    ([name, read]) => [name, name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`), read] as const,
  );
  return (value: unknown): Read<Readers> => {
    const from = fields(value);
    return Object.fromEntries(named.map(([name, key, read]) => [name, read(from[key])])) as Read<Readers>;
  };
}
