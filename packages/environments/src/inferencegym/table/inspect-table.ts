import { EnvironmentError } from '@servegym/openenv/definition';
import {
  KEY_COLUMNS,
  type KeyColumn,
  PROMPT_LENGTHS,
  TABLE_COLUMNS,
  type TableColumn,
  type TableRows,
  type ValueColumn,
} from './table-columns.ts';

type Columns = Readonly<Record<TableColumn, Float64Array>>;

/** Values that a key may have. */
const KEY_RANGES: Readonly<
  Record<KeyColumn, { readonly from: number; readonly to: number; readonly whole: boolean }>
> = {
  batch_size: { from: 1, to: 512, whole: true },
  kv_budget: { from: 0.1, to: 1, whole: false },
  spec_length: { from: 0, to: 8, whole: true },
  quant_tier: { from: 0, to: 2, whole: true },
  prompt_len_bucket: { from: 0, to: PROMPT_LENGTHS.length - 1, whole: true },
};

/** Beyond these no server is. */
const ABSURD: Readonly<Record<ValueColumn, number>> = {
  ttft_p50_ms: 3.6e6,
  ttft_p99_ms: 3.6e6,
  tpot_ms: 1e5,
  tps: 1e7,
  gpu_mem_gb: 2000,
  cost_per_1k: 1000,
};

/** No server answers as fast: half of the table below these is in another unit. */
const LEAST_TTFT_MS = 2;
const LEAST_TPOT_MS = 0.3;
/** A prompt that takes a server more time than its other work, tokens. */
const LONG_PROMPT = 512;
/** Prefill of a model of a billion parameters at the peak FLOPs of an H100, in FP8. */
const MOST_TOKENS_PER_MS = 1000;
/** Share of the time that the smallest batch decodes, prefills of long prompts between. */
const LEAST_DECODING = 0.02;

const EXAMPLES = 3;

/** @throws EnvironmentError for a table that cannot be played; each step takes what the one before has found sound */
export function requirePlayable(rows: TableRows): void {
  const columns = rows.columns as Columns;
  for (const inspect of [inspectColumns, inspectCells, inspectGrid, inspectSeconds])
    inspect(columns, rows.count);
}

function refuse(code: string, message: string): never {
  throw new EnvironmentError(code, message);
}

function inspectColumns(columns: Partial<Columns>, count: number): void {
  for (const name of TABLE_COLUMNS.filter((name) => columns[name] === undefined)) {
    refuse(
      'MISSING_COLUMN',
      `Expected a column \`${name}\` of numbers, there is none. Columns are ${TABLE_COLUMNS.join(', ')}`,
    );
  }
  if (count === 0) refuse('NO_ROWS', 'Expected a row for each measured configuration, the table has none');
}

function inspectCells(columns: Columns, count: number): void {
  for (const name of TABLE_COLUMNS) {
    const values = columns[name];
    /** The first rows that are wrong; the first finding of a column is reported. */
    const wrong = (isWrong: (value: number) => boolean) => rowsWhere(count, (row) => isWrong(values[row]));
    const empty = wrong((value) => !Number.isFinite(value));
    const { from, to, whole } = KEY_RANGES[name as KeyColumn] ?? {};
    const most = ABSURD[name as ValueColumn];
    const outside = wrong((value) => value < from || value > to || (whole && !Number.isInteger(value)));
    const notPositive = wrong((value) => most !== undefined && !(value > 0));
    const absurd = wrong((value) => value > most);
    const kind = whole ? 'a whole number' : 'a number';
    const rules: [code: string, rows: readonly number[], expected: string, advice?: string][] = [
      ['KEY_OUT_OF_RANGE', outside, `\`${name}\` to be ${kind} from ${from} to ${to}`],
      [
        'NOT_POSITIVE',
        notPositive,
        `every \`${name}\` to be above 0`,
        '. Leave out what could not be measured',
      ],
      ['ABSURD_VALUE', absurd, `\`${name}\` to be at most ${most}`, '. Is it in the right unit?'],
    ];
    if (empty.length === count) {
      refuse(
        'WRONG_TYPE',
        `Expected \`${name}\` to hold numbers, none of its ${count} cells does. Write it as INT or DOUBLE`,
      );
    }
    if (empty.length > 0) {
      refuse(
        'NOT_A_NUMBER',
        `Expected a finite number in every cell of \`${name}\`, row ${list(empty)} has none`,
      );
    }
    for (const [code, rows, expected, advice = ''] of rules) {
      if (rows.length === 0) continue;
      refuse(code, `Expected ${expected}, got ${values[rows[0]]} in row ${list(rows)}${advice}`);
    }
  }
}

function inspectGrid(columns: Columns, count: number): void {
  const seen = new Map<string, number>();
  for (let row = 0; row < count; row++) {
    const key = keyOf(columns, row);
    const before = seen.get(key);
    if (before !== undefined)
      refuse(
        'DUPLICATE_ROW',
        `Expected one row for each configuration, rows ${before + 1} and ${row + 1} both have ${key}`,
      );
    seen.set(key, row);
  }
  if (!columns.quant_tier.includes(0))
    refuse(
      'MISSING_FP16',
      'Expected rows with `quant_tier` 0 (FP16), there are none. The other tiers can be left out, FP16 cannot',
    );
  const axes = KEY_COLUMNS.map((name) => [...new Set(columns[name])].sort((a, b) => a - b));
  const planned = axes.reduce((product, values) => product * values.length, 1);
  const everyRow = 'Expected a row for every combination of the values that the table has';
  if (planned > 10 * count)
    refuse('MISSING_ROW', `${everyRow}: ${planned}, there are ${count}. Measure on a grid`);
  const absent: string[] = [];
  for (let at = 0; at < planned; at++) {
    let rest = at;
    const values = axes.map((axis) => {
      const value = axis[rest % axis.length];
      rest = Math.floor(rest / axis.length);
      return value;
    });
    const key = describeKey(values);
    if (!seen.has(key)) absent.push(key);
  }
  if (absent.length === 0) return;
  const examples = `${absent.slice(0, EXAMPLES).join('; ')}${absent.length > EXAMPLES ? '; ...' : ''}`;
  refuse(
    'MISSING_ROW',
    `${everyRow}, ${absent.length} of ${planned} are missing: ${examples}. Measure them, or leave out the values that were not measured everywhere`,
  );
}

/** Latencies in seconds, which would play as a server a thousand times as fast. */
function inspectSeconds(columns: Columns, count: number): void {
  const inSeconds = (name: ValueColumn, sign: string) =>
    refuse(
      'SECONDS_NOT_MS',
      `Expected \`${name}\` in ms, got seconds as it seems: ${sign}. Multiply it by 1,000`,
    );
  const smallest = columns.batch_size.reduce((least, size) => Math.min(least, size));
  // Few requests at once wait for nothing but their own prompt.
  const alone = rowsWhere(count, (row) => columns.batch_size[row] === smallest);
  const long = alone.filter((row) => promptAtLeast(columns, row) >= LONG_PROMPT);
  const medianOf = (rows: readonly number[], value: (row: number) => number) =>
    median(Float64Array.from(rows, value));
  for (const name of ['ttft_p50_ms', 'ttft_p99_ms'] as const) {
    const typical = median(columns[name]);
    const tokensPerMs = medianOf(long, (row) => promptAtLeast(columns, row) / columns[name][row]);
    if (typical < LEAST_TTFT_MS) inSeconds(name, `half of it is below ${LEAST_TTFT_MS} (median ${typical})`);
    else if (tokensPerMs > MOST_TOKENS_PER_MS) {
      inSeconds(name, `a lone long prompt would be computed at ${Math.round(tokensPerMs)} tokens a ms`);
    }
  }
  const typical = median(columns.tpot_ms);
  const decoding = medianOf(alone, (row) => (columns.tps[row] * columns.tpot_ms[row]) / 1000 / smallest);
  if (typical < LEAST_TPOT_MS) {
    inSeconds('tpot_ms', `half of it is below ${LEAST_TPOT_MS} (median ${typical})`);
  } else if (decoding < LEAST_DECODING) {
    const percent = (100 * decoding).toFixed(1);
    inSeconds(
      'tpot_ms',
      `at \`batch_size\` ${smallest} and its \`tps\`, a server would decode ${percent} % of the time`,
    );
  }
}

/** Prompt tokens that a row has at least. */
function promptAtLeast(columns: Columns, row: number): number {
  return PROMPT_LENGTHS[columns.prompt_len_bucket[row] - 1] ?? 0;
}

function rowsWhere(count: number, holds: (row: number) => boolean): number[] {
  return Array.from({ length: count }, (_, row) => row).filter(holds);
}

/** Rows counted from 1, the first few of them. */
function list(rows: readonly number[]): string {
  const shown = rows.slice(0, EXAMPLES).map((row) => row + 1);
  const more = rows.length - shown.length;
  return more > 0 ? `${shown.join(', ')} and ${more} more` : shown.join(', ');
}

/** NaN where there are no values. */
function median(values: Float64Array): number {
  return values.toSorted()[values.length >> 1] ?? Number.NaN;
}

function keyOf(columns: Columns, row: number): string {
  return describeKey(KEY_COLUMNS.map((name) => columns[name][row]));
}

function describeKey(values: readonly number[]): string {
  return KEY_COLUMNS.map((name, i) => `${name} ${values[i]}`).join(', ');
}
