// The parts of reading a trace that also run in a page.
import {
  type ReadTrace,
  RequestReader,
  SimulatorError,
  TRACE_COLUMNS,
  type TraceOptions,
  traceError,
  traceParser,
  traceTextOf,
} from '@servegym/simulator';
import {
  type AsyncBuffer,
  type Compressors,
  parquetMetadataAsync,
  parquetRead,
  parquetReadObjects,
  parquetSchema,
} from 'hyparquet';

interface ParquetFile {
  readonly file: AsyncBuffer;
  /** Name for the messages. */
  readonly source: string;
  /** Default: all, without limits on what they expand to. */
  readonly compressors?: Compressors;
}

/** A choice: the rows of a group are in memory together. Older versions of pyarrow make groups of millions. */
const MOST_ROWS_OF_GROUP = 2 ** 23;

/**
 * Reads a trace in text that comes piece by piece.
 * @param name of the file without the ending of its compression, for the format
 */
export async function parsePieces(
  pieces: AsyncIterable<Uint8Array>,
  path: string,
  name: string,
  options: TraceOptions & { readonly load?: number } = {},
): Promise<ReadTrace> {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  let parser: ReturnType<typeof traceParser> | undefined;
  let start = '';
  const push = (text: string) => {
    // The first piece shows what the file holds.
    if (parser === undefined) {
      start += text;
      if (start.trim() === '') return;
      parser = traceParser(traceTextOf(name, start), path, options);
      parser.push(start);
    } else parser.push(text);
  };
  for await (const piece of pieces) push(decoder.decode(piece, { stream: true }));
  push(decoder.decode());
  parser ??= traceParser(traceTextOf(name, start), path, options);
  return parser.end();
}

/**
 * Reads the columns of a trace in Parquet, a row group at a time.
 * @throws SimulatorError with the row that is wrong.
 */
export async function readParquetTrace(
  { file, source: path, ...own }: ParquetFile,
  options: TraceOptions = {},
  onProgress?: (rows: number, ofRows: number) => void,
): Promise<ReadTrace> {
  const compressors = own.compressors ?? (await import('hyparquet-compressors')).compressors;
  const metadata = await parquetMetadataAsync(file).catch((error: Error) => {
    throw malformed(path, error);
  });
  const names = parquetSchema(metadata).children.map(({ element }) => element.name);
  const [first] = names.includes('block_size')
    ? await parquetReadObjects({ file, metadata, compressors, columns: ['block_size'], rowEnd: 1 })
    : [];
  const { prefixBlockTokens = first?.block_size === undefined ? undefined : Number(first.block_size) } =
    options;
  const reader = new RequestReader(names, {
    ...{ kind: 'Parquet', source: path, line: null },
    options: { ...options, prefixBlockTokens },
  });
  const { prefix } = reader.columns;
  const all = TRACE_COLUMNS.map((column) => names[reader.columns[column]]);
  const columns = all.filter((name) => name !== undefined);
  const rows = Number(metadata.num_rows);
  let rowStart = 0;
  for (const group of metadata.row_groups) {
    if (group.num_rows > MOST_ROWS_OF_GROUP) {
      const expected = `row groups of at most ${MOST_ROWS_OF_GROUP} rows`;
      throw traceError('TRACE_TOO_LARGE', path, null, expected, `${group.num_rows}`);
    }
    const rowEnd = rowStart + Number(group.num_rows);
    await parquetRead({
      ...{ file, metadata, columns, compressors, rowStart, rowEnd, rowFormat: 'object' },
      onComplete(requests: Record<string, unknown>[]) {
        for (const [i, request] of requests.entries()) {
          const [at, tokens, generated, hashes, lora] = all.map((name) => request[name]);
          const hashIds = prefix === -1 ? undefined : (hashes ?? []);
          reader.add(rowStart + i + 1, at, tokens, generated, { hashIds, adapter: lora });
        }
      },
    }).catch((error: Error) => {
      throw error instanceof SimulatorError ? error : malformed(path, error);
    });
    rowStart = rowEnd;
    onProgress?.(rowStart, rows);
  }
  return reader.end();
}

function malformed(path: string, { message }: Error): SimulatorError {
  const got = `one that cannot be read: ${message}`;
  return traceError('TRACE_MALFORMED_LINE', path, null, 'a Parquet file', got);
}
