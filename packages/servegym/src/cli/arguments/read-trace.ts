import { createReadStream, type ReadStream } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import type { Duplex, Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip, createZstdDecompress } from 'node:zlib';
import {
  type ReadTrace,
  type TraceOptions,
  type TraceParser,
  traceParser,
  traceTextOf,
} from '@servegym/simulator';
import { InputError } from '../input-error.ts';
import { readParquetTrace } from './parquet-trace.ts';

/** How to read a trace file. */
export interface TraceFileOptions extends TraceOptions {
  /** Which of the loads of a benchmark's result, from 1. */
  readonly load?: number;
  /** Told how many bytes of the file have been read. */
  readonly onProgress?: (bytes: number, ofBytes: number) => void;
}

const REASONS: Record<string, string> = {
  ENOENT: 'there is no such file',
  EISDIR: 'it is a folder',
  EACCES: 'permission denied',
  Z_DATA_ERROR: 'its compression is broken',
  Z_BUF_ERROR: 'its compressed data end too early',
  ERR_ENCODING_INVALID_ENCODED_DATA: 'it is not UTF-8',
};

const PIECE_BYTES = 2 ** 20;

/**
 * Reads a trace from CSV, JSON lines, a benchmark's result (see `traceParser`) or Parquet, as it is or compressed with
 * gzip or Zstandard, piece by piece: what is in memory is the trace, not the file.
 *
 * @throws InputError when the file cannot be read; TraceError with the line that is wrong.
 */
export async function readTrace(path: string, options: TraceFileOptions = {}): Promise<ReadTrace> {
  try {
    const file = await open(path);
    try {
      return await readOpened(file, path, options);
    } finally {
      await file.close();
    }
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== undefined && code in REASONS) throw new InputError(`cannot read ${path}: ${REASONS[code]}`);
    throw error;
  }
}

async function readOpened(file: FileHandle, path: string, options: TraceFileOptions): Promise<ReadTrace> {
  const { onProgress, ...traceOptions } = options;
  const { size } = await file.stat();
  const { buffer, bytesRead } = await file.read(Buffer.alloc(4), 0, 4, 0);
  const magic = buffer.toString('latin1', 0, bytesRead);
  if (magic === 'PAR1') return readParquetTrace(path, traceOptions, onProgress);
  const decompress = decompressorFor(magic);
  const stream = createReadStream(path, { highWaterMark: PIECE_BYTES });
  if (onProgress !== undefined) countBytes(stream, size, onProgress);
  const name = decompress === null ? path : path.replace(/\.(gz|gzip|zst|zstd)$/i, '');
  const read = (pieces: AsyncIterable<Buffer>) => parsePieces(pieces, path, name, traceOptions);
  return decompress === null ? read(stream) : readThrough(stream, decompress, read);
}

function decompressorFor(magic: string): Duplex | null {
  if (magic.startsWith('\x1f\x8b')) return createGunzip({ chunkSize: PIECE_BYTES });
  return magic === '\x28\xb5\x2f\xfd' ? createZstdDecompress({ chunkSize: PIECE_BYTES }) : null;
}

async function readThrough(
  stream: Readable,
  decompress: Duplex,
  read: (pieces: AsyncIterable<Buffer>) => Promise<ReadTrace>,
): Promise<ReadTrace> {
  let result: ReadTrace | undefined;
  await pipeline(stream, decompress, async (pieces: AsyncIterable<Buffer>) => {
    result = await read(pieces);
  });
  return result!;
}

async function parsePieces(
  pieces: AsyncIterable<Buffer>,
  path: string,
  name: string,
  options: Omit<TraceFileOptions, 'onProgress'>,
): Promise<ReadTrace> {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  let parser: TraceParser | undefined;
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

function countBytes(
  stream: ReadStream,
  size: number,
  onProgress: (bytes: number, ofBytes: number) => void,
): void {
  stream.on('data', () => onProgress(stream.bytesRead, size));
}
