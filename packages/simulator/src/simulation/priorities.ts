import { PRIORITY_CLASSES } from '../engine/waiting-queue.ts';
import { RandomStream } from '../random/counter-random.ts';
import { SimulatorError } from '../simulator-error.ts';
import type { Trace } from '../traces/trace.ts';

/**
 * A priority class for each of `count` requests, drawn in proportion to `shares`, of which the first is that of the most
 * urgent class. Shares need not add up to 1.
 * @throws SimulatorError for more shares than there are classes, or shares that are none.
 */
export function drawPriorities(count: number, shares: readonly number[], seed: number): Uint8Array {
  checkShares(shares, `1 to ${PRIORITY_CLASSES} priority classes`, PRIORITY_CLASSES);
  const random = new RandomStream(seed, 'priorities');
  return Uint8Array.from({ length: count }, () => random.choose(shares));
}

/** @throws SimulatorError for more shares than `most`, or shares that are none */
function checkShares(shares: readonly number[], what: string, most = Number.POSITIVE_INFINITY): void {
  const areAmounts = shares.every((share) => share >= 0 && share < Number.POSITIVE_INFINITY);
  if (areAmounts && shares.length <= most && shares.some((share) => share > 0)) return;
  throw new SimulatorError(
    'SIMULATION_OPTION',
    `Expected shares of ${what}, 0 or more and one of them above 0, got ${shares.join(', ')}`,
  );
}

/**
 * The trace with a LoRA adapter for each request, drawn in proportion to `shares`, of which the first is that of the base model.
 * Requests of a conversation have the same, as have prompts that begin with the same hash.
 */
export function drawAdapters(trace: Trace, shares: readonly number[], seed: number): Trace {
  checkShares(shares, 'adapters');
  const { followUps, prefixBlocks, arrivalMs } = trace;
  const random = new RandomStream(seed, 'adapters');
  const byHash = new Map<number, number>();
  const of = new Int32Array(arrivalMs.length);
  for (let i = 0; i < of.length; i++) {
    const previous = followUps?.previous[i] ?? -1;
    const [start, end] = [prefixBlocks?.offsets[i] ?? 0, prefixBlocks?.offsets[i + 1] ?? 0];
    // No hash is NaN: prompts without one have nothing in common.
    const hash = start < end ? prefixBlocks!.ids[start] : Number.NaN;
    of[i] = previous >= 0 ? of[previous] : (byHash.get(hash) ?? random.choose(shares));
    if (start < end) byHash.set(hash, of[i]);
  }
  return { ...trace, adapters: { names: shares.slice(1).map((_, i) => `adapter-${i + 1}`), of } };
}
