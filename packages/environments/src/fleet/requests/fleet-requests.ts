import type { PromptPrefix } from '@servegym/simulator';

/** Marks a request that nothing follows. */
export const NO_REQUEST = -1;

/** The requests of an episode. Request i is (`inputTokens[i]`, `outputTokens[i]`, ...). */
export interface FleetRequests {
  readonly inputTokens: Int32Array;
  readonly outputTokens: Int32Array;
  /** Index into `FLEET_CLASSES`. */
  readonly classes: Uint8Array;
  /** Requests that arrive by themselves, in order of arrival: all but later turns. */
  readonly starts: Int32Array;
  /** Tick of arrival of each of `starts`. */
  readonly startTicks: Float64Array;
  /** The next turn of request i's conversation, or `NO_REQUEST`. */
  readonly nextTurn: Int32Array;
  /** Ticks from the answer to the request before it to the arrival of a later turn. */
  readonly thinkTicks: Float64Array;
  /** Text that prompts share: chunks of request i are `ids[offsets[i]] .. ids[offsets[i + 1] - 1]`, which end at `ends`. */
  readonly chunks: {
    readonly ids: Int32Array;
    readonly ends: Int32Array;
    readonly offsets: Int32Array;
  } | null;
}

/** What the prompt of request `id` shares with others; `null` when nothing is known. */
export function promptPrefixOf({ chunks }: FleetRequests, id: number): PromptPrefix | null {
  if (chunks === null) return null;
  const { ids, ends, offsets } = chunks;
  const from = offsets[id];
  const to = offsets[id + 1];
  if (from === to) return null;
  return {
    chunkTokens: BLOCK_TOKENS,
    ids: ids.subarray(from, to),
    ends: ends.subarray(from, to),
    namedTokens: ends[to - 1],
  };
}

/** Chunks end at multiples of this many tokens: the block size of all profiles. */
export const BLOCK_TOKENS = 16;
