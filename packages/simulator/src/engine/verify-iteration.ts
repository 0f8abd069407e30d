import { admitWaiting, continuePrefill } from './admission.ts';
import type { EngineState } from './engine-state.ts';
import type { IterationPlan } from './iteration-plan.ts';
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
  const { timer, draftTimer, config, counters, pool } = state;
  const sequences = batch.count;
  const tokens = sequences * batch.given;
  const fixed = timer.fixedTicks(tokens, sequences, 0);
  const perContext = timer.contextTicks(sequences);
  const until = state.nextInterruption(limit);
  let steps = 0;
  let completed = -1;
  while (completed < 0 && (steps === 0 || state.now < until)) {
    const blocks = batch.blocksForNext();
    if (blocks > pool.free) break;
    pool.take(blocks);
    const context = batch.contextSum + tokens;
    let ticks = fixed + perContext * context;
    if (draftTimer !== null) ticks += draftTimer.ticks(config.speculationDepth, sequences, context);
    state.now += ticks;
    counters.busyTicks += ticks;
    completed = emitVerified(state, batch, ticks);
    steps++;
  }
  counters.iterations += steps;
  completeVerified(state, batch, completed);
  return steps > 0;
}

/**
 * One iteration in which every decoding sequence verifies as many tokens as the speculation depth asks for, beside
 * prefills and admissions.
 * @returns whether it was taken; if not, it is short of blocks or of token budget, and nothing has changed.
 */
export function iterateVerifyBatch(state: EngineState, plan: IterationPlan): boolean {
  const batch = verifyBatch(state);
  if (batch === null) return false;
  const blocks = batch.blocksForNext();
  if (blocks > state.pool.free) return false;
  const { table, timer, draftTimer, config, counters } = state;
  plan.reset();
  state.pool.take(blocks);
  const verified = batch.count * batch.given;
  const budget = continuePrefill(state, plan, state.maxNumBatchedTokens - verified);
  admitWaiting(state, plan, budget);

  const joining = plan.joining.count;
  const sequences = batch.count + joining;
  let context = batch.contextSum + verified;
  for (let i = 0; i < joining; i++) {
    const slot = plan.joining.slots[i];
    context += table.input[slot] + table.generatedOffset[slot];
  }
  const tokens = verified + joining + plan.prefillTokens;
  if (tokens === 0) return true;
  let ticks =
    timer.fixedTicks(tokens, sequences, plan.attention) +
    timer.contextTicks(sequences, plan.prefillTokens) * context;
  if (batch.count > 0 && draftTimer !== null) {
    ticks += draftTimer.ticks(config.speculationDepth, batch.count, context);
  }
  state.now += ticks;
  counters.iterations++;
  counters.busyTicks += ticks;
  completeVerified(state, batch, emitVerified(state, batch, ticks));
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

/** The decoding sequences as a batch, or `null` when the token budget may not reach for all of them. */
function verifyBatch(state: EngineState): VerifyBatch | null {
  const { verifications: batch, table, running, config } = state;
  const given = 1 + config.speculationDepth;
  if (running.count * given > state.maxNumBatchedTokens) return null;
  if (!batch.active) {
    batch.activate(given, state.acceptance);
    for (let slot = running.head; slot >= 0; slot = table.next[slot]) {
      if (table.status[slot] === DECODING) batch.add(slot);
    }
  }
  return batch;
}

/** Lets every member emit what its next verify step gives it. Answers the first that is complete, or -1. */
function emitVerified(state: EngineState, batch: VerifyBatch, ticks: number): number {
  if (batch.count === 0) return -1;
  const { counters } = state;
  const emitted = batch.emitNext(ticks, state.interTokenLatency);
  counters.outputTokens += emitted;
  counters.draftTokens += batch.count * (batch.given - 1);
  counters.acceptedTokens += emitted - batch.count + batch.surplusOfNext();
  return batch.advance(emitted);
}

function completeVerified(state: EngineState, batch: VerifyBatch, first: number): void {
  for (let slot = first; slot >= 0; ) {
    const following = batch.completingAfter(slot);
    state.complete(slot);
    slot = following;
  }
}
