import { availableParallelism, cpus, loadavg } from 'node:os';
import { parseArgs } from 'node:util';
import { percentileOfSorted } from '@servegym/simulator/statistics';

/** Figures of one line of a table, by their names. A number carries no rounding: the printer rounds it. */
export type Row = Readonly<Record<string, string | number | boolean | null | undefined>>;

type Value = string | number | boolean | readonly number[] | undefined;

/** Values of the options by their names; the default tells the type. `undefined`: a text that may be left out. */
type Options = Readonly<Record<string, Value>>;

/** Default of an option that has to be given. */
export const required = Symbol('required') as unknown as string;
/** Default of an option of text that may be left out. */
export const text = undefined as string | undefined;

/** What a case is called with: an option's type, from its default. */
type Values<O extends Options> = {
  -readonly [Name in keyof O]: O[Name] extends boolean
    ? boolean
    : O[Name] extends number
      ? number
      : O[Name] extends readonly number[]
        ? readonly number[]
        : O[Name] extends string
          ? string
          : string | undefined;
};

/** A measurement: `npx node benchmarks/run.ts NAME` runs the case of `benchmarks/cases/NAME.ts`. */
export interface Case<O extends Options = Options> {
  /** What it measures, and what it needs. */
  readonly what: string;
  readonly options: O;
  /** Names of the arguments behind the options; empty: it takes none. */
  readonly arguments?: string;
  /**
   * Yields rows as they are known, and texts for a person between them. A row with other names than the one before it
   * begins a table of its own.
   */
  run(
    values: Values<O>,
    positionals: readonly string[],
  ): AsyncIterable<Row | string> | Iterable<Row | string>;
}

/** A case, with the types of its values inferred from the options. */
export function benchmark<const O extends Options>(of: Case<O>): Case<O> {
  return of;
}

/** Runs a case with the arguments of a command line, and prints its rows: a table in Markdown, or JSON with `--json`. */
export async function runCase<O extends Options>(
  { what, options, run, ...of }: Case<O>,
  args: readonly string[],
  print: (line: string) => void = console.log,
): Promise<Row[]> {
  const kindOf = (value: Value) => (typeof value === 'boolean' ? 'boolean' : 'string');
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: of.arguments !== undefined,
    options: {
      json: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
      ...Object.fromEntries(Object.entries(options).map(([name, value]) => [name, { type: kindOf(value) }])),
    } as Record<string, { type: 'boolean' | 'string'; default?: boolean }>,
  });
  if (values.help) {
    print(`${what}\n\n${usage(options, of.arguments)}`);
    return [];
  }
  const chosen = Object.entries(options).map(([name, initial]) => [
    name,
    read(name, values[name], initial as Value),
  ]);
  const rows: Row[] = [];
  let header = '';
  for await (const row of run(Object.fromEntries(chosen), positionals)) {
    if (typeof row === 'string') {
      if (values.json) console.error(row);
      else print(`${header === '' ? '' : '\n'}${row}`);
      header = '';
      continue;
    }
    rows.push(row);
    if (values.json) continue;
    const names = line(Object.keys(row));
    if (names !== header)
      print(`${rows.length > 1 ? '\n' : ''}${names}\n${line(Object.values(row).map(alignment))}`);
    header = names;
    print(line(Object.values(row).map(shown)));
  }
  if (values.json) print(JSON.stringify(rows));
  else print(`\n${machine()}`);
  return rows;
}

function read(name: string, given: string | boolean | undefined, initial: Value): Value {
  if (given === undefined && initial === required) throw new Error(`expected --${name}`);
  if (given === undefined || typeof given === 'boolean') return given ?? initial;
  if (typeof initial === 'number') return number(name, given);
  if (Array.isArray(initial)) return given.split(',').map((each) => number(name, each));
  return given;
}

function number(name: string, given: string): number {
  const value = Number(given);
  if (given.trim() === '' || Number.isNaN(value))
    throw new Error(`expected a number for --${name}, got ${given}`);
  return value;
}

/** The options with their defaults. */
export function usage(options: Options, positionals = ''): string {
  const shownOptions = Object.entries(options).map(([name, initial]) => {
    if (typeof initial === 'boolean') return `[--${name}]`;
    if (initial === required) return `--${name} VALUE`;
    return `[--${name} ${initial === undefined ? 'VALUE' : String(initial)}]`;
  });
  return [positionals, ...shownOptions, '[--json]'].filter(Boolean).join(' ');
}

/** A table in Markdown. */
export function table(header: readonly string[], rows: readonly (readonly string[])[]): string {
  return [header, header.map(() => '---'), ...rows].map(line).join('\n');
}

function line(cells: readonly string[]): string {
  return `| ${cells.join(' | ')} |`;
}

function alignment(value: Row[string]): string {
  return typeof value === 'number' ? '---:' : '---';
}

/** A figure for a person: numbers to four digits at least, and whole. */
function shown(value: Row[string]): string {
  if (typeof value !== 'number') return value === null ? '' : String(value);
  if (!Number.isFinite(value)) return '-';
  const digits = Math.max(0, 3 - Math.floor(Math.log10(Math.abs(value) || 1)));
  return value.toLocaleString('en-US', { maximumFractionDigits: Math.min(digits, 6) });
}

/** The machine that figures were measured on. */
function machine(): string {
  const [{ model }] = cpus();
  const load = loadavg()[0].toFixed(1);
  return `Node ${process.versions.node}, ${availableParallelism()} cores of ${model.trim()}, load ${load}, ${new Date().toISOString().slice(0, 10)}`;
}

/** The value that half of the others lie below. */
export function median(values: readonly number[]): number {
  return quantile(values, 0.5);
}

/** The value that a share of the others lies below, between neighbours where it falls between; `NaN` of none. */
export function quantile(values: readonly number[], share: number): number {
  return percentileOfSorted(
    values.toSorted((a, b) => a - b),
    100 * share,
  );
}

/** What `work` gives, with its wall time and the processor time of this process, s. */
export async function timed<T>(
  work: () => T | Promise<T>,
): Promise<{ readonly result: T; readonly wallS: number; readonly cpuS: number }> {
  const startedAt = performance.now();
  const cpu = process.cpuUsage();
  const result = await work();
  const { user, system } = process.cpuUsage(cpu);
  return { result, wallS: (performance.now() - startedAt) / 1000, cpuS: (user + system) / 1e6 };
}
