import {
  type ReadTrace,
  RequestReader,
  SimulatorError,
  type TraceOptions,
  traceError,
} from '@servegym/simulator';
import { asyncBufferFromFile, parquetMetadataAsync, parquetRead, parquetSchema } from 'hyparquet';
import { compressors } from 'hyparquet-compressors';

/**
 * Reads the columns of a trace in Parquet, a row group at a time.
 * @throws SimulatorError with the row that is wrong.
 */
export async function readParquetTrace(
  path: string,
  options: TraceOptions,
  onProgress?: (rows: number, ofRows: number) => void,
): Promise<ReadTrace> {
  const file = await asyncBufferFromFile(path);
  const metadata = await parquetMetadataAsync(file).catch((error: Error) => {
    throw malformed(path, error);
  });
  const names = parquetSchema(metadata).children.map(({ element }) => element.name);
  const reader = new RequestReader(names, { kind: 'Parquet', source: path, line: null, options });
  const { arrival, input, output, prefix } = reader.columns;
  const columns = [arrival, input, output, ...(prefix === -1 ? [] : [prefix])].map((index) => names[index]);
  const rows = Number(metadata.num_rows);
  let rowStart = 0;
  for (const group of metadata.row_groups) {
    const rowEnd = rowStart + Number(group.num_rows);
    await parquetRead({
      ...{ file, metadata, columns, compressors, rowStart, rowEnd, rowFormat: 'object' },
      onComplete(requests: Record<string, unknown>[]) {
        for (const [i, request] of requests.entries()) {
          const [at, tokens, generated, hashes] = columns.map((name) => request[name]);
          reader.add(rowStart + i + 1, at, tokens, generated, prefix === -1 ? undefined : (hashes ?? []));
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
  return traceError(
    'TRACE_MALFORMED_LINE',
    path,
    null,
    'a Parquet file',
    `one that cannot be read: ${message}`,
  );
}
