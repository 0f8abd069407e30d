import type { Trace } from '@servegym/simulator';
import type { ServeTrace } from '../requests/request-source.ts';
import { traceDigest } from './trace-digest.ts';

/** Prefixes are cached in whole KV blocks of this size or smaller powers of two, tokens. */
const KV_BLOCK_TOKENS = 16;

const TRACES = new Map<string, ServeTrace>();

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
  TRACES.set(name, added);
  return added;
}

/** The trace of this name; `undefined` when there is none. */
export function findServeTrace(name: string): ServeTrace | undefined {
  return TRACES.get(name);
}

/** Names of the traces that this process knows. */
export function serveTraceNames(): string[] {
  return [...TRACES.keys()];
}
