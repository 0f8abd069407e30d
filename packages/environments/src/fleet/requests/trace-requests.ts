import { PromptChains, TICKS_PER_MS, type Trace } from '@servegym/simulator';
import { type FleetRequests, NO_REQUEST } from './fleet-requests.ts';

/**
 * The requests of a trace, with its conversations and shared prompts. Of answers that several requests follow, the first
 * of these follows; the others arrive as recorded.
 * @param classes Index into `FLEET_CLASSES` of each request. Default all interactive.
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
