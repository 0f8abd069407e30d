import { counted, type TimeUnit, TRACE_COLUMNS, type Trace, type TraceColumn } from '@servegym/simulator';
import { InvalidArgumentError } from 'commander';
import { whole } from '../arguments/options.ts';
import { openTraffic, readingLine, readTraffic, trafficOptions, trafficWord } from '../arguments/traffic.ts';
import { defineCommand, type WordTable } from '../command-table.ts';
import { InputError } from '../failure.ts';
import { writeOutputFile } from '../files.ts';

const COLUMNS: readonly string[] = TRACE_COLUMNS;
const UNITS = ['s', 'ms', 'us', 'ns'] as const satisfies readonly TimeUnit[];
/** Tokens that a prefix hash stands for where a file does not say it. */
const BLOCK_TOKENS = 512;

const output = {
  output: { value: '<file>', writes: true, help: 'JSON lines with .jsonl, CSV with .csv (without prefixes)' },
} as const satisfies WordTable;

export const convertCommand = () =>
  defineCommand({
    words: {
      file: {
        value: '<file>',
        help: 'CSV, JSON lines, Parquet, or a result of vllm bench serve or GuideLLM; .gz and .zst too',
      },
      ...output,
    },
    options: {
      map: {
        value: '<column=name,...>',
        parse: parseMap,
        help: 'columns with unclear names: arrival=t0,input=n_in,output=n_out,prefix=hashes,adapter=model',
      },
      timeUnit: {
        value: '<unit>',
        choices: UNITS,
        help: 'unit of arrivals that are plain numbers (default: guessed)',
      },
      sort: { help: 'put requests that are out of order in order' },
      skipUnanswered: { help: 'leave out requests without an output' },
      prefixBlockTokens: whole(
        '<n>',
        1,
        1e6,
        `tokens that one prefix hash stands for (default: ${BLOCK_TOKENS})`,
      ),
      load: whole('<n>', 1, 10_000, 'which load of a benchmark that has several'),
    },
    after: `Examples:
  servegym traffic convert log.csv.gz clean.jsonl --map arrival=t0,input=n_in,output=n_out --time-unit ms --sort`,
    async action({ file, output: path, skipUnanswered, ...options }) {
      const unanswered = skipUnanswered ? ({ unanswered: 'skip' } as const) : {};
      const { trace, reading } = await readTraffic(file, { ...options, ...unanswered });
      console.error(readingLine(file, reading, trace.arrivalMs.length));
      await writeTraffic(path, trace);
    },
  });

export const drawCommand = () =>
  defineCommand({
    words: { ...trafficWord, ...output },
    options: { seed: { ...trafficOptions.seed, help: 'the same seed draws the same requests' } },
    after: `Examples:
  servegym traffic draw chat@12/s,30m chat.csv
  servegym traffic draw mooncake-conversation agents.jsonl`,
    async action({ traffic, output: path, seed }) {
      const { trace } = await openTraffic(traffic, { seed, withoutPrefixes: !path.endsWith('.jsonl') });
      await writeTraffic(path, trace);
    },
  });

async function writeTraffic(path: string, trace: Trace): Promise<void> {
  if (!/\.(jsonl|csv)$/.test(path))
    throw new InputError(`expected a file that ends in .jsonl or .csv, got ${path}`);
  if (trace.followUps !== undefined)
    throw new InputError(
      `${trace.source}: expected requests, got conversations, which all commands read as they are`,
    );
  await writeOutputFile(path, path.endsWith('.csv') ? csvLines(trace) : jsonLines(trace));
  console.log(`wrote ${counted(trace.arrivalMs.length, 'request')} to ${path}`);
}

/** Requests as Mooncake's traces have them; the first names the size of the blocks where it is another. */
function* jsonLines({ arrivalMs, inputTokens, outputTokens, adapters, prefixBlocks }: Trace) {
  const { blockTokens = BLOCK_TOKENS, ids, offsets } = prefixBlocks ?? {};
  for (let i = 0; i < arrivalMs.length; i++) {
    const request = {
      timestamp: arrivalMs[i],
      input_length: inputTokens[i],
      output_length: outputTokens[i],
      hash_ids: ids && [...ids.subarray(offsets![i], offsets![i + 1])],
      adapter: adapters?.names[adapters.of[i] - 1],
      block_size: i === 0 && blockTokens !== BLOCK_TOKENS ? blockTokens : undefined,
    };
    yield `${JSON.stringify(request)}\n`;
  }
}

/** Requests with the columns of the Azure traces. */
function* csvLines({ arrivalMs, inputTokens, outputTokens, adapters }: Trace) {
  yield `TIMESTAMP,ContextTokens,GeneratedTokens${adapters ? ',adapter' : ''}\n`;
  for (let i = 0; i < arrivalMs.length; i++) {
    const adapter = adapters ? `,${adapters.names[adapters.of[i] - 1] ?? ''}` : '';
    yield `${timestamp(arrivalMs[i] / 1000)},${inputTokens[i]},${outputTokens[i]}${adapter}\n`;
  }
}

/** Date and time of the Azure traces; a written trace begins at the start of 2024. */
function timestamp(seconds: number): string {
  const date = new Date(Date.UTC(2024, 0, 1) + Math.floor(seconds) * 1000);
  const ticks = Math.floor((seconds % 1) * 1e7);
  return `${date.toISOString().slice(0, 19).replace('T', ' ')}.${String(ticks).padStart(7, '0')}`;
}

function parseMap(text: string): Partial<Record<TraceColumn, string>> {
  const pairs = text.split(',').map((part) => {
    const [column, name] = part.split(/=(.*)/s).map((piece) => piece.trim());
    if (COLUMNS.includes(column) && name) return [column, name];
    throw new InvalidArgumentError(`Expected ${COLUMNS.join(', ')}, each =name, got \`${part}\`.`);
  });
  return Object.fromEntries(pairs);
}
