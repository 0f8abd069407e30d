import { readTrace } from '@servegym/operators/traces';
import type { ReadTrace, TimeUnit, TraceColumn, TraceOptions, TraceReading } from '@servegym/simulator';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { showProgress } from '../output/progress.ts';
import { wholeNumber } from './options.ts';

/** Values of the options that `addTraceOptions` adds. */
export interface TraceArguments {
  readonly map?: Partial<Record<TraceColumn, string>>;
  readonly timeUnit?: TimeUnit;
  readonly sort?: boolean;
  readonly skipUnanswered?: boolean;
  readonly prefixBlockTokens?: number;
  readonly load?: number;
}

const COLUMNS: readonly string[] = ['arrival', 'input', 'output', 'prefix'] satisfies TraceColumn[];

/** Adds to a command how its trace is to be read. */
export function addTraceOptions(command: Command): Command {
  return command
    .option(
      '--map <column=name,...>',
      'columns of the trace with unclear names, e.g. arrival=t0,input=n_in,output=n_out',
      parseMap,
    )
    .addOption(
      new Option('--time-unit <unit>', 'unit of arrivals that are plain numbers (default: guessed)').choices([
        's',
        'ms',
        'us',
        'ns',
      ]),
    )
    .option('--sort', 'put requests that are out of order in order')
    .option('--skip-unanswered', 'leave out requests without an output')
    .addOption(
      new Option(
        '--prefix-block-tokens <n>',
        'tokens that one prefix hash stands for (default: 512)',
      ).argParser(wholeNumber(1, 1_000_000)),
    )
    .option('--load <n>', 'which load of a benchmark that has several', wholeNumber(1, 10_000));
}

/** Reads the trace that somebody named, and shows in a terminal how far it is. `onRequests` is that of `TraceOptions`. */
export async function readTraceArgument(
  path: string,
  options: TraceArguments,
  onRequests?: TraceOptions['onRequests'],
): Promise<ReadTrace> {
  const { map, timeUnit, sort, skipUnanswered, prefixBlockTokens, load } = options;
  const read = await readTrace(path, {
    ...{ map, timeUnit, sort, prefixBlockTokens, load, onRequests },
    ...(skipUnanswered && { unanswered: 'skip' as const }),
    onProgress: (done: number, of: number) =>
      showProgress(`reading ${path}: ${Math.round((100 * done) / of)} %`),
  });
  showProgress('');
  return read;
}

/** Format, columns and requests of a trace, in a line. */
export function readingLine(path: string, reading: TraceReading, requests: number): string {
  return `${path}: ${reading.format}; ${columnsText(reading)}; ${leftOutText(reading, requests)}`;
}

function columnsText({ columns, arrivalUnit }: TraceReading): string {
  const unit = arrivalUnit === 'date' ? 'date and time' : arrivalUnit;
  return [
    ...(columns.arrival === undefined ? [] : [`arrival ${columns.arrival} (${unit})`]),
    `input ${columns.input}, output ${columns.output}`,
    ...(columns.prefix === undefined ? [] : [`prefix hashes ${columns.prefix}`]),
  ].join(', ');
}

function leftOutText({ unanswered, outOfOrder, conversations }: TraceReading, requests: number): string {
  const count = (n: number) => n.toLocaleString('en-US');
  return [
    `${count(requests)} requests`,
    ...(conversations === undefined ? [] : [`${count(conversations)} conversations`]),
    ...(unanswered > 0 ? [`${count(unanswered)} without an output left out`] : []),
    ...(outOfOrder > 0 ? [`${count(outOfOrder)} put in order`] : []),
  ].join(', ');
}

function parseMap(text: string): Partial<Record<TraceColumn, string>> {
  const map: Record<string, string> = {};
  for (const part of text.split(',')) {
    const [column, name] = part.split(/=(.*)/s).map((piece) => piece.trim());
    if (column === undefined || !COLUMNS.includes(column) || !name) {
      throw new InvalidArgumentError(`Expected ${COLUMNS.join(', ')}, each =name, got \`${part}\`.`);
    }
    map[column] = name;
  }
  return map;
}
