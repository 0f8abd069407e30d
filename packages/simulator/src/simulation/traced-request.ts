import type { EngineRequest } from '../engine/engine-log.ts';
import type { PromptPrefix } from '../engine/prefix-cache.ts';
import { ticksFromMs } from '../engine/ticks.ts';
import type { Trace } from '../traces/trace.ts';
import type { PromptChains } from './prompt-chains.ts';

/**
 * Request `at` of a trace as an engine takes it under the number `id`.
 * @param chains The trace's hashes, when all of them are known; else they are taken one by one.
 * @param arrival Tick; default the trace's arrival, counted from tick `origin`.
 */
export function tracedRequest(
  trace: Trace,
  at: number,
  id: number,
  origin: number,
  priorities: Uint8Array | undefined,
  chains: PromptChains | null,
  arrival = ticksFromMs(trace.arrivalMs[at]) - origin,
): EngineRequest {
  return {
    id,
    arrival,
    input: trace.inputTokens[at],
    output: trace.outputTokens[at],
    priority: priorities === undefined ? 0 : priorities[id],
    adapter: trace.adapters === undefined ? 0 : trace.adapters.of[at],
    prefix: trace.prefixBlocks === undefined ? null : promptPrefix(trace, trace.prefixBlocks, at, chains),
  };
}

/** The block hashes of request `at`: in the chunks of `chains`, or one by one. */
export function promptPrefix(
  { inputTokens, outputTokens }: Trace,
  prefixBlocks: NonNullable<Trace['prefixBlocks']>,
  at: number,
  chains: PromptChains | null,
): PromptPrefix {
  if (chains !== null) return chains.prefixOf(at, inputTokens[at], outputTokens[at]);
  const { blockTokens: chunkTokens, ids, offsets, namesAnswers = false } = prefixBlocks;
  const named = (offsets[at + 1] - offsets[at]) * chunkTokens;
  return {
    ...{ chunkTokens, ids: ids.subarray(offsets[at], offsets[at + 1]) },
    ...(namesAnswers && { namedTokens: Math.min(named, inputTokens[at] + outputTokens[at]) }),
  };
}
