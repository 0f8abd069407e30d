import { EnvironmentError } from '@servegym/openenv/definition';
import { z } from 'zod';
import { nameList } from '../../reset-values.ts';
import type { ServeTrace } from './request-source.ts';
import { findServeTrace, inlineTraceSchema, knownInlineTrace, serveTraceNames } from './serve-traces.ts';

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
  const [name, trace] = namedTrace(option);
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

function namedTrace(option: string): readonly [string, ServeTrace] {
  const [name, digest] = option.split(DIGEST_MARK);
  const trace = findServeTrace(name);
  if (trace === undefined) {
    throw new EnvironmentError(
      'UNKNOWN_TRACE',
      `Expected \`trace\` to be ${nameList(serveTraceNames(), 'the name of a trace that the server was started with (`--trace FILE`)')}, or columns; got \`${name.slice(0, 100)}\``,
    );
  }
  if (digest !== undefined && digest !== trace.digest) {
    throw new EnvironmentError(
      'TRACE_CHANGED',
      `Expected the trace \`${name}\` with the digest ${digest.slice(0, 100)}, but it has ${trace.digest} now: the file has changed since the episode began. Reset to play what it holds now`,
    );
  }
  return [name, trace];
}

function columnsTrace(option: unknown): ServeTrace {
  const known = knownInlineTrace(option);
  if (known !== undefined) return known;
  const reading = inlineTraceSchema.safeParse(option);
  if (reading.success) return knownInlineTrace(reading.data)!;
  const [issue] = reading.error.issues;
  throw new EnvironmentError(
    'INVALID_TRACE',
    `Expected \`trace\` to be columns arrival_s, input_tokens and output_tokens; ${['trace', ...issue.path].join('.')}: ${issue.message}`,
  );
}
