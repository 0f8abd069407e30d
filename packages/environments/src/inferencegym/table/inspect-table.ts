import {
  KEY_COLUMNS,
  type KeyColumn,
  PROMPT_LENGTHS,
  TABLE_COLUMNS,
  type TableColumn,
  type TableRows,
  type ValueColumn,
} from './table-columns.ts';

/** Finding about a table. With an `error` it cannot be played; a `warning` asks for a look. */
export interface TableFinding {
  readonly code: string;
  readonly severity: 'error' | 'warning';
  /** Sentence with the expectation, the value that came, and advice. */
  readonly message: string;
}

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

/** A fall against what physics says counts from here on, as a share: less is noise. */
const NOISE = 0.1;
const EXAMPLES = 3;

/** Looks at a table before it is played. The errors come first: each step takes what the one before has found sound. */
export function inspectTable(rows: TableRows): readonly TableFinding[] {
  const findings: TableFinding[] = [];
  const error = (code: string, message: string) => findings.push({ code, severity: 'error', message });
  const warn = (code: string, message: string) => findings.push({ code, severity: 'warning', message });
  const columns = rows.columns as Columns;
  for (const inspect of [inspectColumns, inspectCells, inspectGrid, inspectSeconds]) {
    inspect(columns, rows.count, error);
    if (findings.length > 0) return findings;
  }
  inspectCoverage(columns, warn);
  inspectUnits(columns, warn);
  inspectPhysics(columns, rows.count, warn);
  if (rows.conditions.specAcceptRates === null && new Set(columns.spec_length).size > 1) {
    warn(
      'UNKNOWN_ACCEPTANCE',
      'The file does not say which share of the draft tokens was accepted while it was measured (key-value metadata `spec_accept_rates`, for instance {"1":0.69,"4":0.43}): it is taken to be what each task says',
    );
  }
  return findings;
}

type Report = (code: string, message: string) => void;

function inspectColumns(columns: Partial<Columns>, count: number, error: Report): void {
  for (const name of TABLE_COLUMNS.filter((name) => columns[name] === undefined)) {
    error(
      'MISSING_COLUMN',
      `Expected a column \`${name}\` of numbers, there is none. Columns are ${TABLE_COLUMNS.join(', ')}`,
    );
  }
  if (count === 0) error('NO_ROWS', 'Expected a row for each measured configuration, the table has none');
}

function inspectCells(columns: Columns, count: number, error: Report): void {
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
    const got = (rows: readonly number[]) => `got ${values[rows[0]]} in row ${list(rows)}`;
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
    const broken = rules.find(([, rows]) => rows.length > 0);
    if (empty.length === count) {
      error(
        'WRONG_TYPE',
        `Expected \`${name}\` to hold numbers, none of its ${count} cells does. Write it as INT or DOUBLE`,
      );
    } else if (empty.length > 0) {
      error(
        'NOT_A_NUMBER',
        `Expected a finite number in every cell of \`${name}\`, row ${list(empty)} has none`,
      );
    } else if (broken !== undefined) {
      const [code, rows, expected, advice = ''] = broken;
      error(code, `Expected ${expected}, ${got(rows)}${advice}`);
    }
  }
}

function inspectGrid(columns: Columns, count: number, error: Report): void {
  const seen = new Map<string, number>();
  for (let row = 0; row < count; row++) {
    const key = keyOf(columns, row);
    const before = seen.get(key);
    if (before !== undefined) {
      error(
        'DUPLICATE_ROW',
        `Expected one row for each configuration, rows ${before + 1} and ${row + 1} both have ${key}`,
      );
      return;
    }
    seen.set(key, row);
  }
  if (!columns.quant_tier.includes(0)) {
    error(
      'MISSING_FP16',
      'Expected rows with `quant_tier` 0 (FP16), there are none. The other tiers can be left out, FP16 cannot',
    );
    return;
  }
  const axes = KEY_COLUMNS.map((name) => [...new Set(columns[name])].sort((a, b) => a - b));
  const planned = axes.reduce((product, values) => product * values.length, 1);
  const everyRow = 'Expected a row for every combination of the values that the table has';
  if (planned > 10 * count) {
    error('MISSING_ROW', `${everyRow}: ${planned}, there are ${count}. Measure on a grid`);
    return;
  }
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
  error(
    'MISSING_ROW',
    `${everyRow}, ${absent.length} of ${planned} are missing: ${examples}. Measure them, or leave out the values that were not measured everywhere`,
  );
}

function inspectCoverage(columns: Columns, warn: Report): void {
  for (const name of KEY_COLUMNS) {
    if (name === 'quant_tier') continue;
    const { from, to } = KEY_RANGES[name];
    const [least, most] = extent(columns[name]);
    const ends = [
      ...(least > from ? [`from ${from} to ${least} it is ${least}`] : []),
      ...(most < to ? [`from ${most} to ${to} it is ${most}`] : []),
    ];
    if (ends.length === 0) continue;
    warn(
      'MISSING_CORNER',
      `\`${name}\` is measured from ${least} to ${most}, actions and traffic go from ${from} to ${to}: ${ends.join(', ')} that is played`,
    );
  }
  const lacking = ['FP16', 'INT8', 'INT4'].filter((_, tier) => !columns.quant_tier.includes(tier));
  if (lacking.length > 0) {
    warn(
      'MISSING_TIER',
      `${lacking.join(' and ')} is not measured: the latencies of FP16 are taken times 0.82 (INT8) and 0.68 (INT4), which makes INT4 the best tier always`,
    );
  }
}

/** Latencies in seconds, which would play as a server a thousand times as fast. */
function inspectSeconds(columns: Columns, count: number, error: Report): void {
  const inSeconds = (name: ValueColumn, sign: string) =>
    error(
      'SECONDS_NOT_MS',
      `Expected \`${name}\` in ms, got seconds as it seems: ${sign}. Multiply it by 1,000`,
    );
  const [smallest] = extent(columns.batch_size);
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

function inspectUnits(columns: Columns, warn: Report): void {
  const typicalTpot = median(columns.tpot_ms);
  const typicalCost = median(columns.cost_per_1k);
  if (typicalTpot > 2000) {
    warn(
      'MICROSECONDS_NOT_MS',
      `Half of \`tpot_ms\` is above 2,000 ms (median ${typicalTpot}): it seems to be in microseconds. Divide by 1,000`,
    );
  }
  const [, mostMemory] = extent(columns.gpu_mem_gb);
  if (mostMemory <= 1) {
    warn(
      'MEMORY_NOT_GB',
      `No \`gpu_mem_gb\` is above 1 (most ${mostMemory}): it seems to be a share of the GPU. Give GB, 10^9 bytes`,
    );
  } else if (mostMemory > 400) {
    warn(
      'MEMORY_NOT_GB',
      `\`gpu_mem_gb\` goes up to ${mostMemory}: it seems to be in MB. Give GB, 10^9 bytes`,
    );
  }
  if (typicalCost < 2e-4) {
    warn(
      'USD_NOT_CENTS',
      `Half of \`cost_per_1k\` is below 0.0002 (median ${typicalCost}): it seems to be in dollars. It is US cents for 1,000 output tokens`,
    );
  }
}

function inspectPhysics(columns: Columns, count: number, warn: Report): void {
  const inverted = rowsWhere(count, (row) => columns.ttft_p99_ms[row] < columns.ttft_p50_ms[row]);
  if (inverted.length > 0) {
    warn(
      'P99_BELOW_P50',
      `Expected \`ttft_p99_ms\` to be at least \`ttft_p50_ms\`, row ${list(inverted)} has it the other way round`,
    );
  }
  // With no more than `batch_size` sequences a tpot apart each, no more tokens can come out.
  const tooMany = rowsWhere(
    count,
    (row) => columns.tps[row] > (1000 / columns.tpot_ms[row]) * columns.batch_size[row] * (1 + 2 * NOISE),
  );
  if (tooMany.length > 0) {
    warn(
      'TPS_ABOVE_BATCH',
      `Expected \`tps\` to be at most \`batch_size\` x 1000 / \`tpot_ms\`, row ${list(tooMany)} has more. \`tps\` counts output tokens only`,
    );
  }
  const rules = [
    ['tpot_ms', 'batch_size', 'rise'],
    ['ttft_p50_ms', 'prompt_len_bucket', 'rise'],
    ['gpu_mem_gb', 'kv_budget', 'rise'],
    ['tps', 'kv_budget', 'rise'],
    ['tps', 'prompt_len_bucket', 'fall'],
  ] as const;
  const [smallest] = extent(columns.batch_size);
  for (const [value, key, direction] of rules) {
    // A pool that holds fewer long prompts runs a smaller batch: only a lone request has to wait longer for a longer one.
    const counts = (row: number) => value !== 'ttft_p50_ms' || columns.batch_size[row] === smallest;
    const against = falls(columns, rowsWhere(count, counts), value, key, direction === 'rise' ? 1 : -1);
    if (against.length === 0) continue;
    const [[from, to]] = against;
    warn(
      'NOT_MONOTONE',
      `Expected \`${value}\` to ${direction} with \`${key}\`, other things equal; in ${against.length} places it does not, for instance ${columns[value][from]} at ${keyOf(columns, from)} and ${columns[value][to]} at \`${key}\` ${columns[key][to]}. Measure longer, or smooth`,
    );
  }
}

/** Pairs of neighbours along a key where a value goes the wrong way by more than noise. */
function falls(
  columns: Columns,
  rows: readonly number[],
  value: ValueColumn,
  key: KeyColumn,
  sign: 1 | -1,
): [number, number][] {
  const others = KEY_COLUMNS.filter((name) => name !== key);
  const lines = Map.groupBy(rows, (row) => others.map((name) => columns[name][row]).join());
  const found: [number, number][] = [];
  for (const line of lines.values()) {
    line.sort((a, b) => columns[key][a] - columns[key][b]);
    for (let i = 1; i < line.length; i++) {
      const change = (columns[value][line[i]] - columns[value][line[i - 1]]) * sign;
      if (change < -NOISE * columns[value][line[i - 1]]) found.push([line[i - 1], line[i]]);
    }
  }
  return found;
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

function extent(column: Float64Array): [number, number] {
  let [least, most] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  for (const value of column) {
    least = Math.min(least, value);
    most = Math.max(most, value);
  }
  return [least, most];
}

function keyOf(columns: Columns, row: number): string {
  return describeKey(KEY_COLUMNS.map((name) => columns[name][row]));
}

function describeKey(values: readonly number[]): string {
  return KEY_COLUMNS.map((name, i) => `${name} ${values[i]}`).join(', ');
}
