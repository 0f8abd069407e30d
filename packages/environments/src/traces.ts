import { createHash } from 'node:crypto';
import { endianness } from 'node:os';
import { EnvironmentError } from '@servegym/openenv/definition';
import { MAX_REQUEST_TOKENS, type Trace } from '@servegym/simulator';
import { z } from 'zod';
import { complain, nameList, REQUEST_CLASSES } from './tasks.ts';

/** A trace that an episode can be played on. */
export interface ServeTrace extends Trace {
  /** SHA-256 of its requests, in hexadecimal: episodes on another trace of the same name are told apart by it. */
  readonly digest: string;
  /** Index into `REQUEST_CLASSES`, for each request. Without it, the task's shares decide. */
  readonly classes?: Uint8Array;
}

/** Most requests of a trace that comes with a reset. Longer ones are given to the server as a file. */
export const MOST_INLINE_REQUESTS = 20_000;
/** Arrivals after this are refused, s: thirty days. */
const LATEST_ARRIVAL_S = 30 * 86_400;

/** Traces of the columns that the schema has returned: resets of a server, and each of a vector, are spared its work. */
const INLINE = new WeakMap<object, ServeTrace>();

/** Wrong entries of a column that are told of: each takes time. */
const MOST_ISSUES = 10;

/**
 * A column of a trace: an array of `item`. `isEntry` must hold for the same values: a schema for each of 20,000 entries
 * would take the server's event loop 30 ms, so that `item` is asked only for what is wrong with an entry, and for JSON
 * Schema.
 */
function column<Entry>(item: z.ZodType<Entry>, isEntry: (entry: unknown) => boolean, description: string) {
  const list = z.array(z.unknown()).min(1).max(MOST_INLINE_REQUESTS);
  const { $schema: _, ...jsonSchema } = z.toJSONSchema(z.array(item).min(1).max(MOST_INLINE_REQUESTS));
  return z
    .unknown()
    .check(({ value, issues }) => {
      const note = ({ error }: z.ZodSafeParseResult<unknown>, ...place: number[]) => {
        for (const issue of error?.issues ?? []) {
          issues.push({ ...issue, path: [...place, ...issue.path], input: value } as (typeof issues)[number]);
        }
      };
      if (!Array.isArray(value) || value.length === 0 || value.length > MOST_INLINE_REQUESTS) {
        note(list.safeParse(value));
        return;
      }
      for (let i = 0; i < value.length && issues.length < MOST_ISSUES; i++) {
        if (!isEntry(value[i])) note(item.safeParse(value[i]), i);
      }
    })
    .overwrite((value) => (Array.isArray(value) ? [...value] : value))
    .meta({ ...jsonSchema, description }) as unknown as z.ZodType<Entry[]>;
}

function isWithin(value: unknown, least: number, most: number): boolean {
  return typeof value === 'number' && value >= least && value <= most;
}

const tokens = (description: string) =>
  column(
    z.int().min(1).max(MAX_REQUEST_TOKENS),
    (entry) => Number.isInteger(entry) && isWithin(entry, 1, MAX_REQUEST_TOKENS),
    description,
  );

const inlineTraceSchema = z
  .strictObject({
    arrival_s: column(
      z.number().min(0).max(LATEST_ARRIVAL_S),
      (entry) => isWithin(entry, 0, LATEST_ARRIVAL_S),
      'Arrivals, s; the first need not be 0; never decreasing',
    ),
    input_tokens: tokens('Prompt tokens'),
    output_tokens: tokens('Generated tokens'),
    class: column(
      z.enum(REQUEST_CLASSES),
      (entry) => (REQUEST_CLASSES as readonly unknown[]).includes(entry),
      "Classes; without them the task's shares decide",
    ).optional(),
  })
  .check((context) => {
    const { value } = context;
    const requests = value.arrival_s.length;
    for (const name of ['input_tokens', 'output_tokens', 'class'] as const) {
      const entries = value[name]?.length ?? requests;
      if (entries === requests) continue;
      complain(context, [name], `Expected as many entries as arrival_s has, ${requests}, got ${entries}`);
    }
    const back = value.arrival_s.findIndex((at, i) => i > 0 && at < value.arrival_s[i - 1]);
    if (back >= 0) {
      const [before, got] = value.arrival_s.slice(back - 1, back + 1);
      const expected = `Expected an arrival at or after the one before it, ${before}`;
      complain(context, ['arrival_s', back], `${expected}, got ${got}`);
    }
    if (context.issues.length === 0) INLINE.set(value, inlineTrace(value));
  })
  .meta({ title: 'InlineTrace', description: 'Requests of your own, as columns of equal length' });

type InlineTrace = z.infer<typeof inlineTraceSchema>;

function inlineTrace(columns: InlineTrace): ServeTrace {
  const first = columns.arrival_s[0];
  const trace = {
    source: 'trace',
    arrivalMs: new Float64Array(columns.arrival_s).map((at) => (at - first) * 1000),
    inputTokens: new Int32Array(columns.input_tokens),
    outputTokens: new Int32Array(columns.output_tokens),
    ...(columns.class && {
      classes: Uint8Array.from(columns.class, (name) => REQUEST_CLASSES.indexOf(name)),
    }),
  };
  return { ...trace, digest: traceDigest(trace) };
}

/** Prefixes are cached in whole KV blocks of this size or smaller powers of two, tokens. */
const KV_BLOCK_TOKENS = 16;

const NAMED = new Map<string, ServeTrace>();

/**
 * Makes a trace known to this process: `reset({trace: name})` plays it. One of the same name is replaced.
 * @throws RangeError for a name with other characters than letters, digits, `.`, `_` and `-`
 */
export function addServeTrace(name: string, trace: Trace): ServeTrace {
  if (!/^[\w.-]{1,100}$/.test(name)) {
    throw new RangeError(
      `Expected the name of a trace to have 1 to 100 letters, digits, dots, dashes and underscores, got ${JSON.stringify(name)}`,
    );
  }
  const { prefixBlocks, ...requests } = trace;
  const playable =
    prefixBlocks !== undefined && prefixBlocks.blockTokens % KV_BLOCK_TOKENS === 0 ? trace : requests;
  const added = { ...playable, digest: traceDigest(playable) };
  NAMED.set(name, added);
  return added;
}

/** The trace of this name; `undefined` when there is none. */
export function findServeTrace(name: string): ServeTrace | undefined {
  return NAMED.get(name);
}

/** SHA-256 of what is played of a trace, in hexadecimal; the same on every machine. */
function traceDigest(trace: Omit<ServeTrace, 'digest'>): string {
  const { arrivalMs, inputTokens, outputTokens, classes, prefixBlocks, followUps } = trace;
  const hash = createHash('sha256');
  const columns = [arrivalMs, inputTokens, outputTokens, classes, prefixBlocks?.ids, prefixBlocks?.offsets];
  for (const column of columns) {
    hash.update(`${column?.length ?? 0};`);
    if (column !== undefined) hash.update(littleEndian(column));
  }
  hash.update(`${prefixBlocks?.blockTokens ?? 0}`);
  if (followUps !== undefined) {
    for (const column of [followUps.previous, followUps.thinkMs]) hash.update(littleEndian(column));
  }
  return hash.digest('hex');
}

function littleEndian(column: Float64Array | Int32Array | Uint8Array): Buffer {
  const bytes = Buffer.from(column.slice().buffer);
  if (endianness() === 'LE') return bytes;
  if (column instanceof Float64Array) return bytes.swap64();
  return column instanceof Int32Array ? bytes.swap32() : bytes;
}

/** Between the name of a trace and its digest. */
const DIGEST_MARK = '@sha256:';

/** The option `trace` of a reset. */
export const traceOption = z
  .union([z.string().max(200).transform(pinned), inlineTraceSchema])
  .optional()
  .meta({ description: 'Your own requests: the name of a trace of this server, or columns' });

/** A trace as a reset gave it, with its name; `trace` for columns. @throws EnvironmentError `UNKNOWN_TRACE`, `TRACE_CHANGED` or `INVALID_TRACE` */
export function readTrace(option: unknown): { readonly name: string; readonly trace: ServeTrace } {
  if (typeof option !== 'string') return { name: 'trace', trace: columnsTrace(option) };
  const [name, digest] = option.split(DIGEST_MARK);
  const trace = findServeTrace(name);
  if (trace === undefined) {
    throw new EnvironmentError(
      'UNKNOWN_TRACE',
      `Expected \`trace\` to be ${nameList([...NAMED.keys()], 'the name of a trace that the server was started with (`--trace FILE`)')}, or columns; got \`${name.slice(0, 100)}\``,
    );
  }
  if (digest !== undefined && digest !== trace.digest) {
    throw new EnvironmentError(
      'TRACE_CHANGED',
      `Expected the trace \`${name}\` with the digest ${digest.slice(0, 100)}, but it has ${trace.digest} now: the file has changed since the episode began. Reset to play what it holds now`,
    );
  }
  return { name, trace };
}

/** Name and digest of the trace that is played, as states have them. */
export function tracePlayed(option: unknown, { digest }: ServeTrace): string {
  const name = typeof option === 'string' ? option.split('@')[0] : 'columns';
  return `${name}${DIGEST_MARK}${digest}`;
}

/** Arrivals of the trace that a reset gives, and the unit of them in s; `undefined` where it gives none that is known. */
export function traceArrivals(
  option: unknown,
): { readonly arrivals: ArrayLike<number>; readonly unitSeconds: number } | undefined {
  if (typeof option === 'string') {
    const known = findServeTrace(option.split(DIGEST_MARK)[0]);
    return known && { arrivals: known.arrivalMs, unitSeconds: 0.001 };
  }
  const { arrival_s: arrivals } = (option ?? {}) as { readonly arrival_s?: unknown };
  return Array.isArray(arrivals) ? { arrivals, unitSeconds: 1 } : undefined;
}

/** The name of a trace with the digest of the requests that it stands for now, so that a record tells which they were. */
function pinned(name: string): string {
  const trace = findServeTrace(name);
  return trace === undefined ? name : `${name}${DIGEST_MARK}${trace.digest}`;
}

function columnsTrace(option: unknown): ServeTrace {
  const known = INLINE.get(option as object);
  if (known !== undefined) return known;
  const reading = inlineTraceSchema.safeParse(option);
  if (reading.success) return INLINE.get(reading.data)!;
  const [issue] = reading.error.issues;
  throw new EnvironmentError(
    'INVALID_TRACE',
    `Expected \`trace\` to be columns arrival_s, input_tokens and output_tokens; ${['trace', ...issue.path].join('.')}: ${issue.message}`,
  );
}
