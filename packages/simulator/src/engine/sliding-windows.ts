import type { EngineState } from './engine-state.ts';
import { DECODING } from './request-table.ts';

/** Decodes that join at once, up to which each is put in its place among others. */
const FEW = 8;

/** Slots whose windows slide in one iteration, in order of admission. One array, reused. */
const sliding: number[] = [];

/**
 * Lets the decodes in lockstep free the blocks that leave their windows when the iteration is scheduled that is `ahead` of the next
 * one, in order of admission: those whose windows reach the end of a block, and those that have just joined.
 */
export function slideWindows(state: EngineState, ahead: number): void {
  if (state.settling.count === 0 && state.pool.slides.length === 1) slideOn(state, ahead, ahead + 1);
  else slideInOrder(state, ahead);
}

function slideInOrder(state: EngineState, ahead: number): void {
  const { decodes, pool, settling, table, unknownTokens, asyncScheduling } = state;
  const { heads, next } = decodes.byResidue!;
  const settled = ahead - unknownTokens;
  sliding.length = 0;
  if (settling.count > FEW) {
    // It does no harm to look at a window once more.
    for (let slot = state.running.head; slot >= 0; slot = table.next[slot]) sliding.push(slot);
  } else {
    for (const tokens of pool.slides) {
      let slot = heads[decodes.crossingResidue(settled, tokens)];
      for (; slot >= 0; slot = next[slot]) insert(slot, table.admitted);
    }
    for (let i = 0; i < settling.count; i++) insert(settling.slots[i], table.admitted);
  }
  const { inFlight, status } = table;
  for (let i = 0; i < sliding.length; i++) {
    const slot = sliding[i];
    if (status[slot] !== DECODING) continue;
    const context = decodes.contextLength(slot) + ahead;
    pool.skip(slot, context - (asyncScheduling ? inFlight[slot] : 0));
    // What came from another engine can be found from now on.
    pool.fill(slot, context + 1 - unknownTokens);
  }
  let kept = 0;
  for (let i = 0; i < settling.count; i++) {
    const slot = settling.slots[i];
    if (status[slot] !== DECODING) continue;
    // A schedule ahead does not know yet that the last tokens of the prompt are computed.
    if (asyncScheduling && inFlight[slot] > 1) settling.slots[kept++] = slot;
    inFlight[slot] = 1;
  }
  settling.count = kept;
}

/** Puts a slot among those that slide, once. */
function insert(slot: number, admitted: Float64Array): void {
  let at = sliding.length;
  while (at > 0 && admitted[sliding[at - 1]] > admitted[slot]) at--;
  if (at > 0 && sliding[at - 1] === slot) return;
  sliding.push(slot);
  for (let i = sliding.length - 1; i > at; i--) sliding[i] = sliding[i - 1];
  sliding[at] = slot;
}

/** The same for iterations from `ahead` to before `end`, in which none joins. */
function slideOn(state: EngineState, ahead: number, end: number): void {
  const { decodes, pool, unknownTokens } = state;
  const { heads, next } = decodes.byResidue!;
  if (pool.slides.length > 1) {
    for (let each = ahead; each < end; each++) slideInOrder(state, each);
    return;
  }
  const last = end - unknownTokens;
  let settled = ahead - unknownTokens;
  let residue = decodes.crossingResidue(settled, pool.slides[0]);
  for (; settled < last; settled++, residue = residue === 0 ? heads.length - 1 : residue - 1) {
    let slot = heads[residue];
    for (; slot >= 0; slot = next[slot]) pool.skip(slot, decodes.contextLength(slot) + settled);
  }
}

/**
 * Slides the windows of the decodes and takes their blocks for up to `most` iterations, of which the first `begun` have been
 * served with theirs: as long as there are enough, and the head of the queue still lacks some. Answers the iterations.
 */
export function slideAndGrow(state: EngineState, most: number, begun: number): number {
  const { decodes, pool, waiting } = state;
  const groups = pool.groupCount;
  const next = waiting.count === 0 ? -1 : state.nextWaiting();
  const head = state.blocksForHead(next);
  const total = (decodes.blocksFor(most) - (begun > 0 ? decodes.blocksForNext() : 0)) * groups;
  if (head === Number.POSITIVE_INFINITY && total <= pool.free) {
    let ahead = begun;
    for (; ahead < most && state.settling.count > 0; ahead++) slideWindows(state, ahead);
    slideOn(state, ahead, most);
    pool.take(total);
    return most;
  }
  // What is taken may be what the head would find, and then it needs others.
  const finds = head < Number.POSITIVE_INFINITY && pool.cachedTokens(next) > 0;
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
