import { quoteField, traceError } from '../simulator-error.ts';
import type { TimeUnit, TraceColumn, TraceOptions } from './trace.ts';

/** Columns of the parts of a request. */
export interface TraceColumns {
  readonly arrival: number;
  readonly input: number;
  readonly output: number;
  /** -1 where there are no prefix hashes. */
  readonly prefix: number;
}

const ARRIVAL_UNITS: Readonly<Record<string, TimeUnit | undefined>> = {
  arrival: 's',
  arrivals: 's',
  arrivaltime: 's',
  arrivedat: 's',
  starttime: 's',
  time: 's',
  arrivalms: 'ms',
  arrivaltimems: 'ms',
  timestampms: 'ms',
  arrivalus: 'us',
  timestampus: 'us',
  arrivalns: 'ns',
  timestampns: 'ns',
};

const NAMES: Readonly<Record<TraceColumn, ReadonlySet<string>>> = {
  arrival: new Set(['timestamp', ...Object.keys(ARRIVAL_UNITS)]),
  input: new Set(
    (
      'contexttokens input inputlen inputlength inputtokens inputtoks isl numprefilltokens prompt promptlen ' +
      'promptlength prompttokens requesttokens'
    ).split(' '),
  ),
  output: new Set(
    (
      'completionlen completiontokens decodetokens generatedtokens generatedlength numdecodetokens osl ' +
      'output outputlen outputlength outputtokens outputtoks responselen responsetokens'
    ).split(' '),
  ),
  prefix: new Set(['hashids']),
};

/** Pattern of the names that stand in when no column has a known name. */
const LIKENESS: Readonly<Partial<Record<TraceColumn, RegExp>>> = {
  arrival: /arriv|timestamp|(^|[^a-z])(time|date|start|created|received|sent)/i,
  input:
    /(prompt|input|context|prefill|query|request).*(tok|len|size|count|num)|(num|n|tokens?)[_ .-]?(prompt|input|in$)/i,
  output:
    /(output|complet|generat|response|answer|decode).*(tok|len|size|count|num)|(num|n|tokens?)[_ .-]?(output|complet|generat|out$)/i,
};

/** Names of missing columns in messages. */
const EXAMPLES: Readonly<Record<TraceColumn, string>> = {
  arrival: 'TIMESTAMP, arrival_ms or arrival_time',
  input: 'ContextTokens, input_tokens or input_length',
  output: 'GeneratedTokens, output_tokens or output_length',
  prefix: 'hash_ids',
};

/** Case, spaces and `_ - .` do not matter in the name of a column. */
export function plainName(name: string): string {
  return name.toLowerCase().replace(/[\s_.-]/g, '');
}

/** The unit that the name of an arrival speaks of. */
export function unitOfName(name: string): TimeUnit | undefined {
  return ARRIVAL_UNITS[plainName(name)];
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
  for (const column of ['arrival', 'input', 'output', 'prefix'] as const) {
    const wanted = map[column];
    if (wanted !== undefined) taken.add(indexOfName(names, wanted, source, line));
  }
  const find = (column: TraceColumn): number => {
    const wanted = map[column];
    if (wanted !== undefined) return indexOfName(names, wanted, source, line);
    const known = names.findIndex((name, i) => !taken.has(i) && NAMES[column].has(plainName(name)));
    if (known !== -1) return known;
    const alike = LIKENESS[column];
    if (alike === undefined) return -1;
    const like = [...names.keys()].filter((i) => !taken.has(i) && alike.test(names[i]));
    if (like.length === 1) return like[0];
    const several = like.length > 1 ? `; it could be ${like.map((i) => names[i]).join(' or ')}` : '';
    throw traceError(
      'TRACE_MISSING_COLUMN',
      source,
      line,
      `a column for the ${column} (${EXAMPLES[column]}), or its name in "map"`,
      `${quoteField(names.join(','))}${several}`,
    );
  };
  const arrival = find('arrival');
  taken.add(arrival);
  const input = find('input');
  taken.add(input);
  const output = find('output');
  return { arrival, input, output, prefix: find('prefix') };
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
  );
}
