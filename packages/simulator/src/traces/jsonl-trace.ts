import { quoteField, traceError } from '../simulator-error.ts';
import { type Entry, isEntry, parseEntry } from './benchmark-result.ts';
import { traceLabRounds } from './conversations.ts';
import { recordSplitter } from './record-splitter.ts';
import { JSON_LINES, RequestReader } from './request-reader.ts';
import { TRACE_COLUMNS, type TraceColumn, type TraceOptions, type TraceParser } from './trace.ts';

/**
 * Reads a trace with a JSON object a line, in order of arrival: Mooncake's form (`timestamp` in ms, `input_length`,
 * `output_length`, and optionally `hash_ids`, the prefix block hashes, with their `block_size` in the first object) or any keys that `csvTraceParser` takes as
 * columns, also inside of objects (`usage.prompt_tokens`). An object with an `error` is a request that failed. With a `session_id`, a request with a `delay` (ms) instead of an arrival follows the answer to the one before
 * it. Further keys are ignored.
 * @param source File name for the messages.
 */
export function jsonlTraceParser(source: string, options: TraceOptions = {}): TraceParser {
  let told: { readonly reader: RequestReader; readonly paths: Record<TraceColumn, Path> } | undefined;
  let failed = 0;
  let hasSessions = false;
  const fromTraceLab = traceLabRounds();

  const begin = (entry: Entry, line: number) => {
    const all = [...pathsIn(entry)];
    const names = all.map((path) => path.join('.'));
    hasSessions = names.includes('session_id');
    // A conversation may be spread over the file.
    const { onRequests, ...whole } = options;
    const { block_size: blockSize } = entry;
    const { prefixBlockTokens = isSize(blockSize) ? blockSize : undefined } = whole;
    const reader = new RequestReader(names, {
      ...{ kind: JSON_LINES, source, line },
      options: { ...whole, prefixBlockTokens, ...(!hasSessions && { onRequests }) },
    });
    const { arrival, input, output, prefix, adapter } = reader.columns;
    const paths = {
      ...{ arrival: all[arrival], input: all[input], output: all[output] },
      // A first request without hashes does not speak for the others.
      prefix: prefix === -1 ? [options.map?.prefix ?? 'hash_ids'] : all[prefix],
      adapter: adapter === -1 ? ['adapter'] : all[adapter],
    };
    return { reader, paths };
  };

  const add = (content: string, line: number) => {
    const entry = fromTraceLab(parseEntry(content, source, line));
    if (entry.error && options.unanswered !== 'refuse') {
      failed += 1;
      return;
    }
    told ??= begin(entry, line);
    const { reader, paths } = told;
    const isFollowUp = hasSessions && entry.delay !== undefined;
    for (const column of ['arrival', 'input', 'output'] as const) {
      if ((isFollowUp && column === 'arrival') || valueAt(entry, paths[column]) !== undefined) continue;
      const expected = `the key ${paths[column].join('.')}, as the objects above have`;
      const got = quoteField(Object.keys(entry).join(', '));
      throw traceError('TRACE_MISSING_COLUMN', source, line, expected, got);
    }
    const [arrival, input, output, hashIds, adapter] = TRACE_COLUMNS.map((column) =>
      valueAt(entry, paths[column]),
    );
    const facts = { hashIds, adapter };
    if (hasSessions && entry.session_id !== undefined) {
      reader.addTurn(line, entry.session_id, [arrival, entry.delay, input, output], facts);
    } else reader.add(line, arrival, input, output, facts);
  };

  const splitter = recordSplitter(source, false, (text, firstLine) => {
    let line = firstLine;
    for (let start = 0; start < text.length; line += 1) {
      const newline = text.indexOf('\n', start);
      const end = newline === -1 ? text.length : newline;
      const content = text.slice(start, end);
      start = end + 1;
      if (content.trim() !== '') add(content, line);
    }
  });
  return {
    push: splitter.push,
    end() {
      splitter.end();
      if (told !== undefined) {
        for (; failed > 0; failed -= 1) told.reader.skip();
        return told.reader.end();
      }
      const [expected, got] =
        failed > 0
          ? ['a request that was answered', `${failed} that failed`]
          : ['a JSON object a line', 'an empty file'];
      throw traceError('TRACE_EMPTY', source, null, expected, got);
    },
  };
}

type Path = readonly string[];

/** Objects in objects that names of columns reach. */
const DEPTH = 4;

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
