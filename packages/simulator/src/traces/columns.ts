import { quoteField, traceError } from '../simulator-error.ts';
import { type TimeUnit, TRACE_COLUMNS, type TraceColumn, type TraceOptions } from './trace.ts';

/** Columns of the parts of a request; -1 for prefix hashes and adapters where there are none. */
export type TraceColumns = Readonly<Record<TraceColumn, number>>;

/** Names of columns as `plainName` has them, the surest first; those of arrivals without `ms`, `us` or `ns` at their end. */
const NAMES: Readonly<Record<TraceColumn, readonly string[]>> = {
  arrival:
    'timestamp arrivaltime arrival arrivals arrivedat requeststart timestampstart timestampstartunix starttime time ts'.split(
      ' ',
    ),
  input: (
    'inputtokenstotal inputtokens prompttokens contexttokens requesttokens inputsequencelength inputlength ' +
    'promptlength inputlen promptlen inputtoks numprefilltokens tokensin intokens isl'
  ).split(' '),
  output: (
    'outputtokens completiontokens generatedtokens responsetokens outputsequencelength outputlength ' +
    'generatedlength outputlen completionlen responselen outputtoks decodetokens numdecodetokens tokensout outtokens osl'
  ).split(' '),
  prefix: ['hashids', 'totalhashes'],
  adapter: 'adapter adaptername adapterid lora loraname loraid loraadapter'.split(' '),
};

/** Names of arrivals that count seconds where they name no other unit. */
const ARRIVALS_IN_S = new Set(NAMES.arrival.filter((name) => name !== 'timestamp'));

/** Form of a trace that somebody publishes or writes. */
interface TraceForm {
  readonly title: string;
  /** Names of columns by which it is known. */
  readonly columns: readonly string[];
  /** Whether its requests are not in order of arrival. */
  readonly isUnordered?: boolean;
  /** Whether it lists requests that failed. */
  readonly listsFailed?: boolean;
}

const FORMS: readonly TraceForm[] = (
  [
    ['Azure publishes it', 'timestamp contexttokens generatedtokens'],
    ['BurstGPT publishes it', 'timestamp requesttokens responsetokens logtype', { listsFailed: true }],
    ['Mooncake publishes it', 'timestamp inputlength outputlength hashids'],
    ['Vidur takes it', 'arrivedat numprefilltokens numdecodetokens'],
    ['ServeGen writes it', 'requestid timestamp inputtokens outputtokens'],
    // These list requests as they ended, or session by session.
    ['AIPerf exports it', 'requeststartns inputsequencelength outputsequencelength', { isUnordered: true }],
    [
      'inference-perf reports it',
      'starttime inputtokens outputtokens outputtokentimes',
      { isUnordered: true },
    ],
    ['TraceLab publishes it', 'inputtokenstotal outputtokens timingevents', { isUnordered: true }],
    [
      'Baseten exports it',
      'timestampstartunixms inputtokens outputtokens',
      { isUnordered: true, listsFailed: true },
    ],
  ] as readonly [by: string, columns: string, traits?: Partial<TraceForm>][]
).map(([by, columns, traits]) => ({ title: `as ${by}`, columns: columns.split(' '), ...traits }));

/** The published form that has these columns. */
export function formOf(names: readonly string[]): TraceForm | undefined {
  const own = new Set(names.map((name) => plainName(ownName(name))));
  return FORMS.find(({ columns }) => columns.every((column) => own.has(column)));
}

/** Pattern of the names that stand in when no column has a known name. */
const LIKENESS: Readonly<Partial<Record<TraceColumn, RegExp>>> = {
  arrival: /arriv|timestamp|(^|[^a-z])(time|date|start|created|received|sent)/i,
  input:
    /(prompt|input|context|prefill|query|request).*(tok|len|size|count|num)|(num|n|tokens?)[_ .-]?(prompt|input|in$)|^(inputs?|in|prompts?|prefill|query)$/i,
  output:
    /(output|complet|generat|response|answer|decode).*(tok|len|size|count|num)|(num|n|tokens?)[_ .-]?(output|complet|generat|out$)|^(outputs?|out|completions?|generat(ed|ion)|response|answer|decode)$/i,
};

const EXAMPLES: Readonly<Record<TraceColumn, string>> = {
  arrival: 'TIMESTAMP, arrival_ms or arrival_time',
  input: 'ContextTokens, input_tokens or input_length',
  output: 'GeneratedTokens, output_tokens or output_length',
  prefix: 'hash_ids',
  adapter: 'adapter or lora',
};

/** Case, spaces and `_ - .` do not matter in the name of a column. */
function plainName(name: string): string {
  return name.toLowerCase().replace(/[\s_.-]/g, '');
}

/** The last part of a name such as `usage.prompt_tokens` or `metrics.output_sequence_length.value`. */
function ownName(name: string): string {
  return name.replace(/\.value$/, '').replace(/^.*\./, '');
}

/** The unit that the name of an arrival speaks of. */
export function unitOfName(name: string): TimeUnit | undefined {
  const own = plainName(ownName(name));
  const [, unit] = /(ms|us|ns)$/.exec(own) ?? [];
  return (unit as TimeUnit | undefined) ?? (ARRIVALS_IN_S.has(own) ? 's' : undefined);
}

/** Number of the column with the surest of the known names; -1 where there is none. */
function findKnown(names: readonly string[], column: TraceColumn, taken: ReadonlySet<number>): number {
  const plain = (name: string) =>
    column === 'arrival' ? plainName(name).replace(/(ms|us|ns)$/, '') : plainName(name);
  for (const known of NAMES[column]) {
    for (const form of [(name: string) => name, ownName]) {
      const index = names.findIndex((name, i) => !taken.has(i) && plain(form(name)) === known);
      if (index !== -1) return index;
    }
  }
  return -1;
}

/**
 * Finds the columns of a trace: those that were named, else by names that are known, else by names that are like them
 * where only one is.
 *
 * @throws {SimulatorError} `TRACE_UNKNOWN_COLUMN` for a named column that is not there, `TRACE_MISSING_COLUMN` for one that
 *   cannot be found.
 */
export function findColumns(
  names: readonly string[],
  map: TraceOptions['map'] = {},
  source: string,
  line: number | null,
): TraceColumns {
  const taken = new Set<number>();
  for (const column of TRACE_COLUMNS) {
    const wanted = map[column];
    if (wanted !== undefined) taken.add(indexOfName(names, wanted, source, line));
  }
  const find = (column: TraceColumn): number => {
    const wanted = map[column];
    if (wanted !== undefined) return indexOfName(names, wanted, source, line);
    const known = findKnown(names, column, taken);
    const alike = LIKENESS[column];
    if (known !== -1 || alike === undefined) return known;
    const like = [...names.keys()].filter((i) => !taken.has(i) && alike.test(names[i].trim()));
    if (like.length === 1) return like[0];
    const several = like.length > 1 ? `; it could be ${like.map((i) => names[i]).join(' or ')}` : '';
    throw traceError(
      'TRACE_MISSING_COLUMN',
      source,
      line,
      `a column for the ${column} (${EXAMPLES[column]})`,
      `${quoteField(names.join(','))}${several}`,
      'map',
    );
  };
  const arrival = find('arrival');
  taken.add(arrival);
  const input = find('input');
  taken.add(input);
  const output = find('output');
  return { arrival, input, output, prefix: find('prefix'), adapter: find('adapter') };
}

function indexOfName(names: readonly string[], wanted: string, source: string, line: number | null): number {
  const exact = names.findIndex((name) => name.trim() === wanted.trim());
  const index = exact === -1 ? names.findIndex((name) => plainName(name) === plainName(wanted)) : exact;
  if (index !== -1) return index;
  throw traceError(
    'TRACE_UNKNOWN_COLUMN',
    source,
    line,
    `a column named ${quoteField(wanted)}`,
    names.map((name) => name.trim()).join(', '),
    'map',
  );
}
