import type { EngineRequest } from '../engine/engine.ts';
import type { PromptPrefix } from '../engine/prefix-cache.ts';
import { ticksFromMs } from '../engine/ticks.ts';
import type { Trace } from '../traces/trace.ts';

/** A request of a trace as an engine takes it, its arrival counted from tick `origin`. */
export function tracedRequest(
  trace: Trace,
  id: number,
  origin: number,
  priorities: Uint8Array | undefined,
): EngineRequest {
  return {
    id,
    arrival: ticksFromMs(trace.arrivalMs[id]) - origin,
    input: trace.inputTokens[id],
    output: trace.outputTokens[id],
    priority: priorities === undefined ? 0 : priorities[id],
    prefix: promptPrefix(trace, id),
  };
}

/** The block hashes of a request, when the trace has them. */
function promptPrefix({ prefixBlocks }: Trace, id: number): PromptPrefix | null {
  if (prefixBlocks === undefined) return null;
  const { blockTokens, ids, offsets } = prefixBlocks;
  return { chunkTokens: blockTokens, ids: ids.subarray(offsets[id], offsets[id + 1]) };
}
