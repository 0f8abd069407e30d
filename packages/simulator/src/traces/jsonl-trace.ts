import { quoteField, traceError } from '../simulator-error.ts';
import { isEntry, parseEntry } from './benchmark-result.ts';
import { traceLabRounds } from './conversations.ts';
import { RecordSplitter } from './record-splitter.ts';
import { JSON_LINES, type ReadTrace, RequestReader } from './request-reader.ts';
import { TRACE_COLUMNS, type TraceColumn, type TraceOptions, type TraceParser } from './trace.ts';

/**
 * Reads a trace with a JSON object a line, in order of arrival: Mooncake's form (`timestamp` in ms, `input_length`,
 * `output_length`, and optionally `hash_ids`, the prefix block hashes, with their `block_size` in the first object) or any keys that `CsvTraceParser` takes as
 * columns, also inside of objects (`usage.prompt_tokens`). An object with an `error` is a request that failed. With a `session_id`, a request with a `delay` (ms) instead of an arrival follows the answer to the one before
 * it. Further keys are ignored.
 */
export class JsonlTraceParser implements TraceParser {
  readonly #source: string;
  readonly #options: TraceOptions;
  readonly #splitter: RecordSplitter;
  #reader: RequestReader | undefined;
  #paths: Record<TraceColumn, Path> | undefined;
  #failed = 0;
  readonly #fromTraceLab = traceLabRounds();
  #hasSessions = false;

  /** @param source File name for the messages. */
  constructor(source: string, options: TraceOptions = {}) {
    this.#source = source;
    this.#options = options;
    this.#splitter = new RecordSplitter(source, { quoted: false }, (text, firstLine) =>
      this.#take(text, firstLine),
    );
  }

  push(text: string): void {
    this.#splitter.push(text);
  }

  end(): ReadTrace {
    this.#splitter.end();
    if (this.#reader === undefined) {
      const [expected, got] =
        this.#failed > 0
          ? ['a request that was answered', `${this.#failed} that failed`]
          : ['a JSON object a line', 'an empty file'];
      throw traceError('TRACE_EMPTY', this.#source, null, expected, got);
    }
    for (; this.#failed > 0; this.#failed -= 1) this.#reader.skip();
    return this.#reader.end();
  }

  #take(text: string, firstLine: number): void {
    let line = firstLine;
    for (let start = 0; start < text.length; line += 1) {
      const newline = text.indexOf('\n', start);
      const end = newline === -1 ? text.length : newline;
      const content = text.slice(start, end);
      start = end + 1;
      if (content.trim() !== '') this.#add(content, line);
    }
  }

  #add(content: string, line: number): void {
    const entry = this.#fromTraceLab(parseEntry(content, this.#source, line));
    if (entry.error && this.#options.unanswered !== 'refuse') {
      this.#failed += 1;
      return;
    }
    const reader = this.#readerFor(entry, line);
    const paths = this.#paths!;
    const isFollowUp = this.#hasSessions && entry.delay !== undefined;
    for (const column of ['arrival', 'input', 'output'] as const) {
      if (isFollowUp && column === 'arrival') continue;
      if (valueAt(entry, paths[column]) === undefined) {
        throw traceError(
          'TRACE_MISSING_COLUMN',
          this.#source,
          line,
          `the key ${paths[column].join('.')}, as the objects above have`,
          quoteField(Object.keys(entry).join(', ')),
        );
      }
    }
    const [arrival, input, output, hashIds, adapter] = TRACE_COLUMNS.map((column) =>
      valueAt(entry, paths[column]),
    );
    const told = { hashIds, adapter };
    if (this.#hasSessions && entry.session_id !== undefined) {
      reader.addTurn(line, entry.session_id, [arrival, entry.delay, input, output], told);
    } else reader.add(line, arrival, input, output, told);
  }

  #readerFor(entry: Record<string, unknown>, line: number): RequestReader {
    if (this.#reader === undefined) {
      const paths = [...pathsIn(entry)];
      const names = paths.map((path) => path.join('.'));
      this.#hasSessions = names.includes('session_id');
      // A conversation may be spread over the file.
      const { onRequests, ...whole } = this.#options;
      const { block_size: blockSize } = entry;
      const { prefixBlockTokens = isSize(blockSize) ? blockSize : undefined } = whole;
      const reader = new RequestReader(names, {
        kind: JSON_LINES,
        source: this.#source,
        line,
        options: { ...whole, prefixBlockTokens, ...(!this.#hasSessions && { onRequests }) },
      });
      const { arrival, input, output, prefix, adapter } = reader.columns;
      this.#paths = {
        ...{ arrival: paths[arrival], input: paths[input], output: paths[output] },
        // A first request without hashes does not speak for the others.
        prefix: prefix === -1 ? [this.#options.map?.prefix ?? 'hash_ids'] : paths[prefix],
        adapter: adapter === -1 ? ['adapter'] : paths[adapter],
      };
      this.#reader = reader;
    }
    return this.#reader;
  }
}

/** Keys that lead to a value. */
type Path = readonly string[];

/** Objects in objects that names of columns reach. */
const DEPTH = 4;

/** Paths of all values that are no objects. */
function* pathsIn(entry: Readonly<Record<string, unknown>>, above: Path = []): Generator<Path> {
  for (const [key, value] of Object.entries(entry)) {
    const path = [...above, key];
    if (isEntry(value) && path.length < DEPTH) yield* pathsIn(value, path);
    else yield path;
  }
}

function valueAt(entry: Readonly<Record<string, unknown>>, path: Path): unknown {
  let value: unknown = entry;
  for (const key of path) value = isEntry(value) && Object.hasOwn(value, key) ? value[key] : undefined;
  return value;
}

function isSize(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) > 0;
}
