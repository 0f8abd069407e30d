import type { EngineRequest } from '../engine/engine-request.ts';
import type { PromptPrefix } from '../engine/prefix-cache.ts';
import { ticksFromMs } from '../engine/ticks.ts';
import type { Trace } from '../traces/trace.ts';

/**
 * Request `at` of a trace as an engine takes it under the number `id`.
 * @param arrival Tick; default the trace's arrival, counted from tick `origin`.
 */
export function tracedRequest(
  trace: Trace,
  at: number,
  id: number,
  origin: number,
  priorities: Uint8Array | undefined,
  arrival = ticksFromMs(trace.arrivalMs[at]) - origin,
): EngineRequest {
  return {
    id,
    arrival,
    input: trace.inputTokens[at],
    output: trace.outputTokens[at],
    priority: priorities === undefined ? 0 : priorities[id],
    prefix: promptPrefix(trace, at),
  };
}

/** The block hashes of request `at`, when the trace has them. */
function promptPrefix({ prefixBlocks }: Trace, at: number): PromptPrefix | null {
  if (prefixBlocks === undefined) return null;
  const { blockTokens, ids, offsets } = prefixBlocks;
  return { chunkTokens: blockTokens, ids: ids.subarray(offsets[at], offsets[at + 1]) };
}
