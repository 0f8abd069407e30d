import { PromptChains, type PromptPrefix, TICKS_PER_MS, type Trace } from '@servegym/simulator';
import { REQUEST_CLASSES } from '../tasks.ts';
import type { FleetTask } from './fleet-task.ts';

/** Marks a request that nothing follows. */
export const NO_REQUEST = -1;

/** The requests of an episode. Request i is (`inputTokens[i]`, `outputTokens[i]`, ...). */
export interface FleetRequests {
  readonly inputTokens: Int32Array;
  readonly outputTokens: Int32Array;
  /** Index into `REQUEST_CLASSES`. */
  readonly classes: Uint8Array;
  /** Requests that arrive by themselves, in order of arrival: all but later turns. */
  readonly starts: Int32Array;
  /** Tick of arrival of each of `starts`. */
  readonly startTicks: Float64Array;
  /** The next turn of request i's conversation, or `NO_REQUEST`. */
  readonly nextTurn: Int32Array;
  /** Ticks from the answer to the request before it to the arrival of a later turn. */
  readonly thinkTicks: Float64Array;
  /** Text that prompts share with others; `null` when none is known. */
  readonly texts: PromptTexts | null;
}

/** Price of each request inside its objectives, USD. */
export function requestPrices(requests: FleetRequests, { prices }: Pick<FleetTask, 'prices'>): Float64Array {
  const { inputTokens, outputTokens, classes, nextTurn } = requests;
  const repeated = new Float64Array(inputTokens.length);
  for (let i = 0; i < nextTurn.length; i++) {
    const next = nextTurn[i];
    if (next !== NO_REQUEST) repeated[next] = Math.min(inputTokens[next], inputTokens[i] + outputTokens[i]);
  }
  const byClass = REQUEST_CLASSES.map((name) => prices[name]);
  const usd = new Float64Array(classes.length);
  for (let i = 0; i < usd.length; i++) {
    const {
      usdPerMillionInput: input,
      usdPerMillionOutput: output,
      usdPerMillionRepeated,
    } = byClass[classes[i]];
    const again = (usdPerMillionRepeated ?? input) - input;
    usd[i] = (inputTokens[i] * input + repeated[i] * again + outputTokens[i] * output) / 1e6;
  }
  return usd;
}

interface PromptTexts {
  /** The text of request `at`, of `input` and `output` tokens. */
  prefixOf(at: number, input: number, output: number): PromptPrefix | null;
}

/** Texts of one chunk that are kept. A choice. */
const KEPT = 64;

/** Texts as chunks: those of request i are `ids[offsets[i]] .. ids[offsets[i + 1] - 1]`, which end at `ends`. */
export class ChunkedTexts implements PromptTexts {
  readonly ids: Int32Array;
  readonly ends: Int32Array;
  readonly offsets: Int32Array;
  /** Texts of one chunk, which many requests share, by its id: views of arrays are dear. */
  readonly #singles: PromptPrefix[] = [];

  constructor(ids: Int32Array, ends: Int32Array, offsets: Int32Array) {
    this.ids = ids;
    this.ends = ends;
    this.offsets = offsets;
  }

  prefixOf(at: number): PromptPrefix | null {
    const { ids, ends, offsets } = this;
    const from = offsets[at];
    const to = offsets[at + 1];
    if (to === from) return null;
    const namedTokens = ends[to - 1];
    const isSingle = to - from === 1;
    const kept = this.#singles[ids[from] % KEPT];
    if (isSingle && kept?.ids[0] === ids[from] && kept.namedTokens === namedTokens) return kept;
    const prefix = {
      ...{ chunkTokens: BLOCK_TOKENS, namedTokens },
      ids: ids.subarray(from, to),
      ends: ends.subarray(from, to),
    };
    if (isSingle) this.#singles[ids[from] % KEPT] = prefix;
    return prefix;
  }
}

/** Chunks end at multiples of this many tokens: the block size of all profiles. */
export const BLOCK_TOKENS = 16;

/**
 * The requests of a trace, with its conversations and shared prompts. Of answers that several requests follow, the first
 * of these follows; the others arrive as recorded.
 * @param classes Index into `REQUEST_CLASSES` of each request. Default all interactive.
 */
export function traceFleetRequests(trace: Trace, classes?: Uint8Array): FleetRequests {
  const { arrivalMs, inputTokens, outputTokens, followUps, prefixBlocks } = trace;
  const count = arrivalMs.length;
  const nextTurn = new Int32Array(count).fill(NO_REQUEST);
  const thinkTicks = new Float64Array(count);
  const starts: number[] = [];
  for (let i = 0; i < count; i++) {
    const previous = followUps?.previous[i] ?? NO_REQUEST;
    if (followUps === undefined || previous === NO_REQUEST || nextTurn[previous] !== NO_REQUEST) {
      starts.push(i);
    } else {
      nextTurn[previous] = i;
      thinkTicks[i] = Math.round(followUps.thinkMs[i] * TICKS_PER_MS);
    }
  }
  return {
    inputTokens,
    outputTokens,
    classes: classes ?? new Uint8Array(count),
    starts: Int32Array.from(starts),
    startTicks: Float64Array.from(starts, (request) => Math.round(arrivalMs[request] * TICKS_PER_MS)),
    nextTurn,
    thinkTicks,
    texts: prefixBlocks === undefined ? null : PromptChains.of(prefixBlocks),
  };
}
