import { admitWaiting, continuePrefill, fillAnswers, planChunk } from './admission.ts';
import type { EngineState } from './engine-state.ts';
import type { IterationPlan } from './iteration-plan.ts';
import { addStep } from './latency-histogram.ts';
import { DECODING } from './request-table.ts';
import type { VerifyBatch } from './verify-batch.ts';

/**
 * Takes all verify steps up to the next completion, the next arrival that could be admitted, the next block shortage or
 * `limit`. Only while nothing but decodes runs and the head of the queue cannot be admitted.
 * @returns whether it got anywhere; if not, the next step is short of blocks or of token budget.
 */
export function skipVerifySteps(state: EngineState, limit: number): boolean {
  const batch = verifyBatch(state);
  if (batch === null) return false;
  // What has ended holds its place and blocks for one more iteration.
  if (state.ended.count > 0) return false;
  const { timer, draftTimer, config, counters, pool, stepLatencies } = state;
  const sequences = batch.count;
  const verified = sequences * batch.given;
  const fixed = timer.fixedTicks(verified + sequences * state.branches, sequences, 0);
  const perContext = timer.contextTicks(sequences);
  const until = state.nextInterruption(limit);
  let { now } = state;
  let { free } = pool;
  let steps = 0;
  let emitted = 0;
  let surplus = 0;
  let completed = -1;
  while (completed < 0 && (steps === 0 || now < until)) {
    const blocks = batch.blocksForNext();
    if (blocks > free) break;
    free -= blocks;
    const context = batch.contextSum + verified;
    let ticks = fixed + perContext * context;
    if (draftTimer !== null) ticks += draftTimer.ticks(config.speculationDepth, sequences, context);
    state.lastStart = now;
    now += ticks;
    const tokens = batch.emitNext(stepLatencies.during(ticks, batch.given));
    emitted += tokens;
    surplus += batch.surplusOfNext();
    completed = batch.advance(tokens);
    steps++;
  }
  if (steps === 0) return false;
  pool.take(pool.free - free);
  counters.iterations += steps;
  counters.busyTicks += now - state.now;
  state.now = now;
  countVerified(state, steps * sequences, emitted, surplus);
  completeVerified(state, completed);
  return true;
}

/**
 * One iteration in which every decoding sequence verifies as many tokens as the speculation depth asks for, beside
 * prefills and admissions.
 * @returns whether it was taken; if not, it has to go through the requests in order, and nothing has changed.
 */
export function iterateVerifyBatch(state: EngineState, plan: IterationPlan): boolean {
  const batch = verifyBatch(state);
  if (batch === null) return false;
  const { table, timer, draftTimer, config, counters } = state;
  const reserved = reserveBlocks(state, batch, plan);
  if (reserved === 'in order') return false;
  if (state.pool.namesAnswers) fillAnswers(state);
  const verified = batch.count * batch.given;
  plan.hasPrefill = state.partials > 0;
  plan.hasRunning = plan.hasPrefill || batch.count > 0;
  const budget = state.maxNumBatchedTokens - verified - continuePrefill(state, plan);
  if (reserved === 'enough') admitWaiting(state, plan, budget);
  state.releaseEnded();

  const joining = plan.joining.count;
  const sequences = batch.count + joining;
  let context = batch.contextSum + verified;
  for (let i = 0; i < joining; i++) {
    const slot = plan.joining.slots[i];
    context += table.input[slot] + table.generatedOffset[slot];
  }
  const tokens = verified + joining + plan.prefillTokens + plan.padding;
  // Everything was preempted or refused: the scheduler comes round again without a forward pass.
  if (tokens === 0) {
    state.pauseUntil(state.now);
    return true;
  }
  let ticks =
    timer.fixedTicks(tokens + batch.count * state.branches, sequences, plan.attention) +
    timer.contextTicks(sequences, plan.prefillTokens) * context +
    state.loadTicks(plan.loadedTokens);
  if (batch.count > 0 && draftTimer !== null) {
    ticks += draftTimer.ticks(config.speculationDepth, batch.count, context);
  }
  state.lastStart = state.now;
  state.now += ticks;
  counters.iterations++;
  counters.busyTicks += ticks;
  if (batch.count > 0) {
    plan.emittedCounts.fill(0);
    const emitted = batch.emitNext(plan.emittedCounts);
    addStep(state.interTokenLatency, ticks, plan.emittedCounts, batch.given);
    countVerified(state, batch.count, emitted, batch.surplusOfNext());
    completeVerified(state, batch.advance(emitted));
  }
  for (let i = 0; i < joining; i++) {
    const slot = plan.joining.slots[i];
    state.interTokenLatency.add(state.now - table.lastToken[slot], 1);
    table.transferred[slot] = 0;
    counters.outputTokens++;
    if (++table.generatedOffset[slot] === table.output[slot]) state.complete(slot);
    else batch.add(slot);
  }
  for (let i = 0; i < plan.finishing.count; i++) state.finishPrefill(plan.finishing.slots[i]);
  return true;
}

/** The decoding sequences as a batch, or `null` when they may not all get the tokens that they ask for. */
function verifyBatch(state: EngineState): VerifyBatch | null {
  const { verifications: batch, table, running, config } = state;
  const given = 1 + config.speculationDepth;
  if (running.count * given > state.maxNumBatchedTokens || given > state.leastOfMostTokens) return null;
  if (!batch.active) {
    batch.activate(given, state.lookahead, state.acceptance);
    for (let slot = running.head; slot >= 0; slot = table.next[slot]) {
      if (table.status[slot] === DECODING) batch.add(slot);
    }
  }
  return batch;
}

/**
 * Takes the blocks for the next verify step, and sees that the incomplete prefill's next chunk has its blocks; preempts
 * when there are too few. Changes nothing when the requests have to be gone through in order.
 */
function reserveBlocks(
  state: EngineState,
  batch: VerifyBatch,
  plan: IterationPlan,
): 'enough' | 'preempted' | 'in order' {
  const { pool } = state;
  let lacking = planChunk(state, plan, state.maxNumBatchedTokens - batch.count * batch.given);
  const enough = batch.blocksForNext() + lacking <= pool.free;
  if (!enough) {
    // With a cache it matters in which order blocks are taken and freed.
    if (state.config.schedulingPolicy !== 'fcfs' || pool.caches) return 'in order';
    // The last of the running list goes, whichever sequence is short: no need to look at each.
    do {
      state.preempt(state.running.tail);
      // An incomplete prefill is the last of the running list.
      lacking = 0;
    } while (batch.blocksForNext() + lacking > pool.free);
  }
  pool.take(batch.blocksForNext());
  return enough ? 'enough' : 'preempted';
}

/** Counts `verifications` of a sequence each, which emitted `emitted` tokens and accepted `surplus` tokens more. */
function countVerified(
  { counters, config }: EngineState,
  verifications: number,
  emitted: number,
  surplus: number,
): void {
  counters.outputTokens += emitted;
  counters.draftTokens += verifications * config.speculationDepth;
  counters.acceptedTokens += emitted - verifications + surplus;
}

/** Completes the members whose last token has come, from the `first` on, or none when it is -1. */
function completeVerified(state: EngineState, first: number): void {
  for (let slot = first; slot >= 0; ) {
    const following = state.verifications.completingAfter(slot);
    state.complete(slot);
    slot = following;
  }
}
