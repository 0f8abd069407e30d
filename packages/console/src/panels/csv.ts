import type { Fields } from '../api/wire.ts';

/** Rows as CSV with a header (RFC 4180). The fields of an object get a column each, named by their path. */
export function csvOf(rows: readonly Fields[]): string {
  const flatRows = rows.map((row) => flat(row));
  const names = [...new Set(flatRows.flatMap((row) => Object.keys(row)))].filter((name) =>
    flatRows.some((row) => row[name] !== undefined),
  );
  return [names, ...flatRows.map((row) => names.map((name) => row[name]))]
    .map((cells) => `${cells.map(cellText).join(',')}\r\n`)
    .join('');
}

/** Hands rows to the person as a CSV file named after a title. */
export function saveCsv(title: string, rows: readonly Fields[]): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([csvOf(rows)], { type: 'text/csv' }));
  link.download = `${title.replace(/[^\w.-]+/g, '-')}.csv`;
  link.click();
  URL.revokeObjectURL(link.href);
}

/** The fields of an object, and those of objects in it under their paths. */
function flat(fields: Fields, prefix = ''): Fields {
  return Object.fromEntries(
    Object.entries(fields).flatMap(([name, value]): [string, unknown][] => {
      const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
      return isObject
        ? Object.entries(flat(value as Fields, `${prefix}${name}.`))
        : [[`${prefix}${name}`, value]];
    }),
  );
}

function cellText(value: unknown): string {
  if (value === undefined || value === null) return '';
  const text = typeof value === 'object' ? JSON.stringify(value) : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
