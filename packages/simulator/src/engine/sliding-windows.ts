import type { EngineState } from './engine-state.ts';
import { DECODING } from './request-table.ts';

/** Slots that are looked for among others one by one. */
const FEW = 8;

/** Slots whose windows slide in one iteration. One array, reused. */
const sliding: number[] = [];

/**
 * Lets the decodes in lockstep free the blocks that leave their windows when the iteration is scheduled that is `ahead` of the next
 * one, in order of admission: those whose windows reach the end of a block, and those that have just joined.
 */
export function slideWindows(state: EngineState, ahead: number): void {
  const { decodes, pool, settling, table, unknownTokens } = state;
  const { heads, next } = decodes.byResidue!;
  const settled = ahead - unknownTokens;
  if (settling.count === 0 && pool.slides.length === 1) {
    let slot = heads[decodes.crossingResidue(settled, pool.slides[0])];
    for (; slot >= 0; slot = next[slot]) pool.skip(slot, decodes.contextLength(slot) + settled);
    return;
  }
  sliding.length = 0;
  if (settling.count > FEW) {
    // It does no harm to look at a window once more.
    for (let slot = state.running.head; slot >= 0; slot = table.next[slot]) sliding.push(slot);
  } else {
    for (const tokens of pool.slides) {
      let slot = heads[decodes.crossingResidue(settled, tokens)];
      for (; slot >= 0; slot = next[slot]) if (!sliding.includes(slot)) sliding.push(slot);
    }
    for (let i = 0; i < settling.count; i++) {
      const slot = settling.slots[i];
      if (!sliding.includes(slot)) sliding.push(slot);
    }
    sliding.sort((a, b) => table.admitted[a] - table.admitted[b]);
  }
  const { asyncScheduling } = state;
  const { inFlight } = table;
  for (const slot of sliding) {
    if (table.status[slot] !== DECODING) continue;
    const context = decodes.contextLength(slot) + ahead;
    pool.skip(slot, context - (asyncScheduling ? inFlight[slot] : 0));
    // What came from another engine can be found from now on.
    pool.fill(slot, context + 1 - unknownTokens);
  }
  let kept = 0;
  for (let i = 0; i < settling.count; i++) {
    const slot = settling.slots[i];
    if (table.status[slot] !== DECODING) continue;
    // A schedule ahead does not know yet that the last tokens of the prompt are computed.
    if (asyncScheduling && inFlight[slot] > 1) settling.slots[kept++] = slot;
    inFlight[slot] = 1;
  }
  settling.count = kept;
}

/**
 * Slides the windows of the decodes and takes their blocks for up to `most` iterations, of which the first `begun` have been
 * served with theirs: as long as there are enough, and the head of the queue still lacks some. Answers the iterations.
 */
export function slideAndGrow(state: EngineState, most: number, begun: number): number {
  const { decodes, pool, waiting } = state;
  const groups = pool.groupCount;
  const head = waiting.count === 0 ? Number.POSITIVE_INFINITY : state.blocksForHead(waiting.head());
  const total = (decodes.blocksFor(most) - (begun > 0 ? decodes.blocksForNext() : 0)) * groups;
  if (head === Number.POSITIVE_INFINITY && total <= pool.free) {
    for (let ahead = begun; ahead < most; ahead++) slideWindows(state, ahead);
    pool.take(total);
    return most;
  }
  // What is taken may be what the head would find, and then it needs others.
  const finds = head < Number.POSITIVE_INFINITY && pool.cachedTokens(waiting.head()) > 0;
  for (let ahead = begun; ahead < most; ahead++) {
    const growth = decodes.blocksForNext(ahead) * groups;
    if (growth > pool.free || (finds && growth > 0)) return ahead;
    if (pool.free - growth + mostFreed(state, ahead) >= head) return ahead;
    slideWindows(state, ahead);
    pool.take(growth);
  }
  return most;
}

/** Most blocks that the windows free in the iteration that is `ahead` of the next one. */
function mostFreed({ decodes, pool, settling, unknownTokens }: EngineState, ahead: number): number {
  if (settling.count > 0) return Number.POSITIVE_INFINITY;
  let sliding = 0;
  for (const tokens of pool.slides) {
    sliding += decodes.residues[decodes.crossingResidue(ahead - unknownTokens, tokens)];
  }
  return sliding * pool.mostFreed;
}
