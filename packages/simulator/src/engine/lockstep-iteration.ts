import { admitWaiting, continuePrefill, fillAnswers, planChunk } from './admission.ts';
import type { EngineState } from './engine-state.ts';
import type { IterationPlan } from './iteration-plan.ts';
import { slideAndGrow, slideWindows } from './sliding-windows.ts';

/** Iterations skipped at once; bounds the terms of the closed form to what a double holds exactly. */
const MAX_SKIP = 65_536;

/**
 * Takes all iterations in one step up to the next completion, the next arrival that could be admitted, the next block
 * shortage or `limit`. Only while nothing but decodes runs and the head of the queue cannot be admitted.
 * @returns whether it got anywhere; if not, the next iteration is short of blocks.
 */
export function skipDecodes(state: EngineState, limit: number): boolean {
  const { decodes, timer, pool } = state;
  // Who fills a block with a name first decides which block is found, and whose windows let go of it.
  if (state.hasWindows && pool.namesAnswers) return false;
  let reserved = 0;
  const hasEnded = state.ended.count > 0;
  if (hasEnded) {
    // What has ended is let go when the first of the iterations has been scheduled and has its blocks.
    reserved = decodes.blocksForNext() * pool.groupCount;
    if (decodes.count === 0 || reserved > pool.free || state.waiting.count > 0 || pool.namesAnswers)
      return false;
    if (state.hasWindows) slideWindows(state, 0);
    pool.take(reserved);
    state.releaseEnded();
  }
  const members = decodes.count;
  const perContext = timer.contextTicks(members);
  const first = timer.decodeTicks(members) + perContext * (decodes.contextSum + members);
  const step = perContext * members;
  const completion = decodes.iterationsToFirstCompletion();
  let iterations = Math.min(completion, MAX_SKIP);

  const until = state.nextInterruption(limit);
  if (progressionSum(first, step, iterations) > until - state.now) {
    iterations = Math.min(iterations, iterationsToReach(until - state.now, first, step));
  }
  if (state.hasWindows) iterations = slideAndGrow(state, iterations, hasEnded ? 1 : 0);
  else iterations = decodes.iterationsWithin(pool.free + reserved, iterations);
  if (iterations === 0) return false;

  const ticks = progressionSum(first, step, iterations);
  if (!state.hasWindows) pool.take(decodes.blocksFor(iterations) - reserved);
  state.now += ticks;
  state.lastStart = state.now - (first + step * (iterations - 1));
  state.counters.iterations += iterations;
  state.counters.busyTicks += ticks;
  state.counters.outputTokens += iterations * members;
  state.interTokenLatency.addProgression(first, step, iterations, members);
  decodes.advance(iterations);
  if (pool.namesAnswers) fillSkipped(state);
  if (iterations === completion) completeDecodes(state);
  else if (state.now >= limit) foresee(state, first + step * iterations, step, completion - iterations);
  return true;
}

/** Takes note until when nothing happens but that all decode on, who end `left` iterations from now at the earliest. */
function foresee(state: EngineState, first: number, step: number, left: number): void {
  if (state.waiting.count + state.future.count > 0 || state.hasWindows) return;
  const ahead = state.decodes.iterationsWithin(state.pool.free, Math.min(left, MAX_SKIP));
  if (ahead > 0) state.quietUntil = state.now + progressionSum(first, step, ahead - 1);
}

/** Lets others find what the decodes have filled, block by block in the order of the iterations that were skipped. */
function fillSkipped(state: EngineState): void {
  const { table, running, decodes, pool, unknownTokens } = state;
  const { blockTokens } = state.settings;
  const filled: { readonly ago: number; readonly slot: number; readonly tokens: number }[] = [];
  for (let slot = running.head; slot >= 0; slot = table.next[slot]) {
    const context = decodes.contextLength(slot) - unknownTokens;
    const named = Math.max(0, table.namedBlocks[slot]);
    if (context < (named + 1) * blockTokens) continue;
    const last = Math.min(Math.floor(context / blockTokens), pool.nameable(slot));
    for (let block = named + 1; block <= last; block++) {
      filled.push({ ago: context - block * blockTokens, slot, tokens: block * blockTokens });
    }
  }
  if (filled.length > 1) filled.sort((a, b) => b.ago - a.ago);
  for (const { slot, tokens } of filled) pool.fill(slot, tokens);
}

/**
 * One iteration in which every decoding sequence emits one token.
 * @returns whether it was taken; if not, it has to go through the requests in order, and nothing has changed.
 */
export function iterateLockstep(state: EngineState, plan: IterationPlan): boolean {
  const { decodes, timer, counters } = state;
  const lacking = state.partials > 0 ? planChunk(state, plan, state.maxNumBatchedTokens - decodes.count) : 0;
  const { pool } = state;
  const growth = decodes.blocksForNext() * pool.groupCount;
  const enough = growth + lacking <= pool.free;
  if (enough) {
    if (state.hasWindows) slideWindows(state, 0);
    pool.take(growth);
  } else if (state.config.schedulingPolicy === 'fcfs' && !state.hasWindows) preemptLast(state, lacking);
  else return false;
  // Most iterations reach the end of no block.
  if (pool.namesAnswers && decodes.blocksForNext(1 - state.unknownTokens) > 0) fillAnswers(state);
  const continued = state.partials > 0 ? continuePrefill(state, plan) : 0;
  const budget = state.maxNumBatchedTokens - decodes.count - continued;
  if (enough) admitWaiting(state, plan, budget);
  if (state.ended.count > 0) state.releaseEnded();

  const members = decodes.count;
  // Everything was preempted or refused: the scheduler comes round again without a forward pass.
  if (members + plan.prefillTokens === 0) {
    state.pauseUntil(state.now);
    return true;
  }
  const fixed =
    plan.prefillTokens === 0
      ? timer.decodeTicks(members)
      : timer.fixedTicks(members + plan.prefillTokens, members, plan.attention);
  const ticks =
    fixed +
    timer.contextTicks(members, plan.prefillTokens) * (decodes.contextSum + members) +
    state.loadTicks(plan.loadedTokens);
  state.lastStart = state.now;
  state.now += ticks;
  counters.iterations++;
  counters.busyTicks += ticks;
  counters.outputTokens += members;
  const joining = plan.joining.count;
  if (members > joining) state.interTokenLatency.add(ticks, members - joining);
  if (joining > 0) endTransfers(state, plan);
  if (members > 0) {
    decodes.advance(1);
    completeDecodes(state);
  }
  for (let i = 0; i < plan.finishing.count; i++) state.finishPrefill(plan.finishing.slots[i]);
  return true;
}

function endTransfers({ interTokenLatency, now, table }: EngineState, { joining }: IterationPlan): void {
  for (let i = 0; i < joining.count; i++) {
    const slot = joining.slots[i];
    interTokenLatency.add(now - table.lastToken[slot], 1);
    table.transferred[slot] = 0;
  }
}

function completeDecodes(state: EngineState): void {
  const decodes = state.decodes;
  while (decodes.count > 0 && decodes.iterationsToFirstCompletion() === 0) state.complete(decodes.first());
}

/**
 * Takes the blocks for the next token of the decodes, and preempts until they and the incomplete prefill have theirs.
 * Under fcfs the victim is always the last of the running list, which is served last: no need to look at each.
 */
function preemptLast(state: EngineState, lacking: number): void {
  const { decodes, pool, running } = state;
  for (let taken = 0; ; state.preempt(running.tail)) {
    const missing = decodes.blocksForNext() - taken;
    const found = Math.min(missing, pool.free);
    pool.take(found);
    taken += found;
    if (found === missing) break;
  }
  // An incomplete prefill is the last.
  if (state.partials > 0 && lacking > pool.free) state.preempt(running.tail);
}

/** first + (first + step) + ... , `count` terms. */
function progressionSum(first: number, step: number, count: number): number {
  return count * first + ((count * (count - 1)) / 2) * step;
}

/** The smallest number of terms, at least 1, whose sum reaches `span`. */
function iterationsToReach(span: number, first: number, step: number): number {
  const slope = first - step / 2;
  let count = Math.max(1, Math.ceil((2 * span) / (slope + Math.sqrt(slope * slope + 2 * step * span))));
  while (progressionSum(first, step, count) < span) count++;
  while (count > 1 && progressionSum(first, step, count - 1) >= span) count--;
  return count;
}
