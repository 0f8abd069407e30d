import { createReadStream } from 'node:fs';
import { type FileHandle, open, readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { type Duplex, Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { brotliDecompressSync, createGunzip, createZstdDecompress, zstdDecompressSync } from 'node:zlib';
import {
  agentSessionsTrace,
  type ReadTrace,
  ragPulseTrace,
  type TraceOptions,
  traceError,
} from '@servegym/simulator';
import { asyncBufferFromFile, type Compressors } from 'hyparquet';
import { compressors as unlimited } from 'hyparquet-compressors';
import { TuningError } from '../search/slo.ts';
import { parsePieces, readParquetTrace } from './trace-pieces.ts';

/** Options of reading a trace file. */
export interface TraceFileOptions extends TraceOptions {
  /** Load of a benchmark's result, from 1. */
  readonly load?: number;
  /** Called with the bytes of the file that have been read. */
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
 * gzip or Zstandard, piece by piece: what is in memory is the trace, not the file. A folder holds RAGPulse's files, or
 * sessions of agents, a JSON document each.
 *
 * @throws TuningError when the file cannot be read; SimulatorError with the line that is wrong.
 */
export async function readTrace(path: string, options: TraceFileOptions = {}): Promise<ReadTrace> {
  try {
    if ((await stat(path)).isDirectory()) return await readFolder(path);
    const file = await open(path);
    try {
      return await readOpened(file, path, options);
    } finally {
      await file.close();
    }
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    const reason = code.startsWith('ZSTD_error') ? REASONS.Z_DATA_ERROR : REASONS[code];
    if (reason === undefined) throw error;
    throw unreadable(path, reason);
  }
}

function unreadable(path: string, reason: string): TuningError {
  return new TuningError('TRACE_UNREADABLE', `cannot read ${path}: ${reason}`);
}

async function readOpened(file: FileHandle, path: string, options: TraceFileOptions): Promise<ReadTrace> {
  const { onProgress, ...traceOptions } = options;
  const { size } = await file.stat();
  const { buffer, bytesRead } = await file.read(Buffer.alloc(4), 0, 4, 0);
  const magic = buffer.toString('latin1', 0, bytesRead);
  if (magic === 'PAR1') {
    const file = await asyncBufferFromFile(path);
    const compressors = limitedCompressors(expansionLimit(path, file.byteLength));
    return readParquetTrace({ file, source: path, compressors }, traceOptions, onProgress);
  }
  const decompress = decompressorFor(magic, path);
  const stream = createReadStream(path, { highWaterMark: PIECE_BYTES });
  if (onProgress !== undefined) stream.on('data', () => onProgress(stream.bytesRead, size));
  const name = decompress === null ? path : path.replace(/\.(gz|gzip|zst|zstd)$/i, '');
  const read = (pieces: AsyncIterable<Buffer>) => parsePieces(pieces, path, name, traceOptions);
  return decompress === null
    ? read(stream)
    : pipeline(stream, decompress, (pieces: AsyncIterable<Buffer>) => read(expanded(pieces, path, size)));
}

/** RAGPulse's file of requests; the other files that begin with a number have the lengths of the parts. */
const RAG_REQUESTS = '0_trace.jsonl';

async function readFolder(folder: string): Promise<ReadTrace> {
  const names = (await readdir(folder)).sort();
  if (names.includes(RAG_REQUESTS)) {
    const parts = names.filter((name) => /^[1-9]\d*_.*\.jsonl$/.test(name));
    const [requests, ...partLengths] = await Promise.all(
      [RAG_REQUESTS, ...parts].map((name) => readText(join(folder, name))),
    );
    return ragPulseTrace({ requests: requests as string, partLengths }, folder);
  }
  const sessions = names.filter((name) => /\.json(\.(gz|zst))?$/i.test(name));
  if (sessions.length === 0) {
    const expected = `a folder with ${RAG_REQUESTS} (RAGPulse) or with sessions of agents (.json, .json.gz)`;
    throw unreadable(folder, `expected ${expected}`);
  }
  const documents = await Promise.all(
    sessions.map(async (name) => {
      const source = join(folder, name);
      const text = await readText(source);
      try {
        return { source, value: JSON.parse(text) as unknown };
      } catch (error) {
        throw traceError('TRACE_MALFORMED_LINE', source, null, 'JSON', (error as Error).message);
      }
    }),
  );
  return agentSessionsTrace(documents, folder);
}

/** A file as text, decompressed. */
async function readText(path: string): Promise<string> {
  const bytes = await readFile(path);
  const decompress = decompressorFor(bytes.toString('latin1', 0, 4), path);
  const whole = (pieces: AsyncIterable<Buffer>) => buffer(expanded(pieces, path, bytes.length));
  const plain = decompress === null ? bytes : await pipeline(Readable.from([bytes]), decompress, whole);
  return new TextDecoder('utf-8', { fatal: true }).decode(plain);
}

const ZSTANDARD_MAGIC = '\x28\xb5\x2f\xfd';
/** First bytes of what is not read. */
const ARCHIVES: Readonly<Record<string, string>> = { PK: 'a zip archive', BZh: 'bzip2', '\xfd7zX': 'xz' };

/** @throws TuningError */
function decompressorFor(magic: string, path: string): Duplex | null {
  if (magic.startsWith('\x1f\x8b')) return createGunzip({ chunkSize: PIECE_BYTES });
  if (magic === ZSTANDARD_MAGIC) return createZstdDecompress({ chunkSize: PIECE_BYTES });
  const [, archive] = Object.entries(ARCHIVES).find(([start]) => magic.startsWith(start)) ?? [];
  if (archive === undefined) return null;
  const expected = 'what is compressed must be gzip, Zstandard or Parquet. Unpack it first';
  throw unreadable(path, `it is ${archive}, and ${expected}`);
}

/**
 * Bytes to which a file may expand: so many times its size and at least so many. A choice: traces in text shrink 3 to 30
 * times, bombs 1,000 times and more.
 */
const MOST_TIMES = 100;
const FREE_BYTES = 64 * 2 ** 20;

/** @throws SimulatorError `TRACE_TOO_LARGE` as soon as a file expands to too much */
function expansionLimit(path: string, fileBytes: number): (bytes: number) => void {
  let left = Math.max(FREE_BYTES, MOST_TIMES * fileBytes);
  return (bytes) => {
    left -= bytes;
    if (left >= 0) return;
    const expected = `a file that expands to at most ${MOST_TIMES} times its size, or ${FREE_BYTES} bytes`;
    throw traceError('TRACE_TOO_LARGE', path, null, expected, 'more. Unpack it first if that is right');
  };
}

async function* expanded(pieces: AsyncIterable<Buffer>, path: string, fileBytes: number) {
  const count = expansionLimit(path, fileBytes);
  for await (const piece of pieces) {
    count(piece.length);
    yield piece;
  }
}

/** Decompressors of pages that give no more than a page says, and count it. */
function limitedCompressors(count: (bytes: number) => void): Compressors {
  const codecs: Compressors = {
    ...unlimited,
    BROTLI: (bytes, most) => brotliDecompressSync(bytes, { maxOutputLength: Math.max(1, most) }),
    ZSTD: (bytes, most) => zstdDecompressSync(bytes, { maxOutputLength: Math.max(1, most) }),
  };
  for (const [codec, expand] of Object.entries(codecs))
    codecs[codec as keyof Compressors] = (bytes, length) => {
      count(length);
      return expand(bytes, length);
    };
  return codecs;
}
