import type { Fields } from './wire.ts';

// Readers of answers whose shape is not known: what is of another type counts as left out.

export function number(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isFinite(value) ? value : undefined;
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
