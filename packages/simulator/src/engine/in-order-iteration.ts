import { admitWaiting } from './admission.ts';
import type { EngineState } from './engine-state.ts';
import type { IterationPlan } from './iteration-plan.ts';
import { addStep } from './latency-histogram.ts';
import { DECODING, ENDED, PREFILLED } from './request-table.ts';

/**
 * One iteration that visits every running request in order, as vLLM does: for whatever the batches of decodes have no
 * short form of, such as a shortage of token budget, several incomplete prefills, or a victim that has been served.
 *
 * A decoding sequence verifies up to `speculationDepth` draft tokens and emits those accepted plus one. Look-ahead slots
 * are allocated before the draft and kept, as vLLM does. When it verifies ahead, the iteration is composed as if the last
 * had accepted all drafts, and has sequences that ended meanwhile.
 */
export function iterateInOrder(state: EngineState, plan: IterationPlan): void {
  const { timer, counters, table } = state;
  if (state.verifiesAhead) {
    for (let slot = state.running.head; slot >= 0; slot = table.next[slot]) state.fillSeen(slot);
  }
  const { budget, preempted } = scheduleRunning(state, plan);
  const step = addUp(state, plan);
  const before = state.admissions;
  if (!preempted) admitWaiting(state, plan, budget);
  const drafts = state.draftsOf(step.requests + state.admissions - before);
  state.releaseEnded();
  for (let i = 0; i < plan.joining.count; i++) {
    const slot = plan.joining.slots[i];
    table.given[slot] = 1;
    addDecode(state, step, slot);
  }
  const tokens = step.tokens + plan.prefillTokens + plan.padding;
  // Everything was preempted or refused: the scheduler comes round again without a forward pass.
  if (tokens === 0) {
    table.unseen.fill(0);
    table.rejected.fill(0);
    state.pauseUntil(state.now);
    return;
  }

  let ticks =
    timer.fixedTicks(tokens + step.drafting * state.branches, step.sequences, plan.attention) +
    timer.contextTicks(step.sequences, plan.prefillTokens) * step.context +
    state.loadTicks(plan.loadedTokens);
  const drafting = state.draftsByBatchSize && drafts > 0 ? step.sequences : step.drafting;
  if (drafting > 0 && state.draftTimer !== null) {
    ticks += state.draftTimer.ticks(drafts, drafting, step.context);
  }
  state.lastStart = state.now;
  state.now += ticks;
  counters.iterations++;
  counters.busyTicks += ticks;
  // Nothing is emitted while decodes wait: the next token of each comes later by as much.
  if (plan.isPrefillOnly) state.stalled += ticks;
  emit(state, plan.emittedCounts, ticks + (plan.isPrefillOnly ? 0 : state.stalled), drafts);
  if (!plan.isPrefillOnly) state.stalled = 0;
}

interface DecodeStep {
  /** Running requests with tokens, those that prefill included. */
  requests: number;
  /** Tokens to verify. */
  tokens: number;
  sequences: number;
  /** Sequences with at least one draft token. */
  drafting: number;
  /** Context tokens, those under verification included. */
  context: number;
}

/** Gives the running requests, in order, tokens and the blocks for them. Answers the budget that is left. */
function scheduleRunning(state: EngineState, plan: IterationPlan): { budget: number; preempted: boolean } {
  const { table, running, pool, verifiesAhead, lookahead, draftsByBatchSize: byBatchSize } = state;
  const { speculationDepth } = state.config;
  const { input, generatedOffset, computed, given, inFlight, status, next, unseen, rejected } = table;
  let budget = state.maxNumBatchedTokens;
  let preempted = false;
  for (let slot = running.head; slot >= 0 && budget > 0; slot = next[slot]) {
    if (status[slot] === ENDED && !state.isVerifiedBeyondEnd(slot)) continue;
    const isDecoding = status[slot] === DECODING || status[slot] === ENDED;
    if (isDecoding && plan.isPrefillOnly) continue;
    const known = input[slot] + generatedOffset[slot];
    const end = isDecoding ? known - 1 + (verifiesAhead ? rejected[slot] : 0) : computed[slot];
    const drafts = byBatchSize ? state.draftsFor(slot) : speculationDepth;
    const wanted = isDecoding ? 1 + drafts : known - end;
    const tokens = Math.min(wanted, budget, plan.mostTokens);
    const reach = end + tokens + lookahead;
    if (state.hasWindows) pool.skip(slot, end - (state.asyncScheduling ? inFlight[slot] : 0));
    const needed = pool.missing(slot, reach);
    while (needed > pool.free) {
      const victim = state.victim();
      budget += given[victim];
      given[victim] = 0;
      state.preempt(victim);
      preempted = true;
      // vLLM gives up on the rest of the list when a request has to preempt itself.
      if (victim === slot) return { budget, preempted };
    }
    state.growTo(slot, reach);
    given[slot] = tokens;
    inFlight[slot] = tokens;
    budget -= tokens;
    // vLLM counts a block as filled as soon as the token that fills it is scheduled.
    let unknown = 0;
    if (isDecoding)
      unknown = verifiesAhead ? unseen[slot] : state.skipped.has(slot) ? 0 : state.unknownTokens;
    computed[slot] = Math.min(end + tokens, known - unknown);
    pool.fill(slot, computed[slot]);
    if (!isDecoding) pool.store(slot, computed[slot]);
  }
  return { budget, preempted };
}

/** Sums up what the running requests were given, and finds the prefills that end. */
function addUp(state: EngineState, plan: IterationPlan): DecodeStep {
  const { input, generatedOffset, computed, given, inFlight, status, next } = state.table;
  state.skipped.count = 0;
  const step: DecodeStep = { requests: 0, tokens: 0, sequences: 0, drafting: 0, context: 0 };
  for (let slot = state.running.head; slot >= 0; slot = next[slot]) {
    const tokens = given[slot];
    if (tokens === 0) {
      inFlight[slot] = 0;
      // The scheduler knows all of a request by the time it schedules it again.
      if (status[slot] === DECODING && state.unknownTokens > 0) {
        state.skipped.push(slot);
        computed[slot] = input[slot] + generatedOffset[slot] - 1;
        state.pool.fill(slot, computed[slot]);
      }
      continue;
    }
    plan.hasRunning = true;
    step.requests++;
    if (status[slot] === DECODING || status[slot] === ENDED) {
      addDecode(state, step, slot);
      if (status[slot] === ENDED) given[slot] = 0;
      continue;
    }
    plan.hasPrefill = true;
    plan.prefillTokens += tokens;
    plan.attention += tokens * (computed[slot] - tokens / 2);
    state.counters.prefillTokens += tokens;
    if (computed[slot] < input[slot] + generatedOffset[slot]) continue;
    status[slot] = PREFILLED;
    state.partials--;
  }
  return step;
}

function addDecode({ table }: EngineState, step: DecodeStep, slot: number): void {
  const tokens = table.given[slot];
  step.tokens += tokens;
  step.sequences++;
  if (tokens > 1) step.drafting++;
  step.context += table.input[slot] + table.generatedOffset[slot] - 1 + tokens;
}

/** Lets every sequence that was given tokens emit what it accepts of them, and ends prefills, in order. */
function emit(state: EngineState, emittedCounts: Float64Array, ticks: number, nextDrafts: number): void {
  const { table, counters, running, interTokenLatency, acceptance } = state;
  const { output, generatedOffset, given, id, transferred, status, next, lastToken, verifySteps } = table;
  const { unseen, rejected } = table;
  const speculates = state.speculative;
  emittedCounts.fill(0);
  for (let slot = running.head; slot >= 0; ) {
    const following = next[slot];
    const drafts = given[slot] - 1;
    given[slot] = 0;
    if (status[slot] === PREFILLED) {
      if (speculates) {
        unseen[slot] = 1;
        table.drafts[slot] = nextDrafts;
      }
      state.finishPrefill(slot);
    } else if (status[slot] === DECODING && drafts >= 0) {
      const emitted = generatedOffset[slot];
      const key = acceptance.requestKey(id[slot]);
      const accepted = drafts === 0 ? 0 : acceptance.accepted(key, verifySteps[slot]++, drafts);
      const tokens = Math.min(1 + accepted, output[slot] - emitted);
      counters.draftTokens += drafts;
      counters.acceptedTokens += accepted;
      counters.outputTokens += tokens;
      if (transferred[slot] === 1) {
        transferred[slot] = 0;
        interTokenLatency.add(state.now - lastToken[slot], 1);
      } else {
        emittedCounts[tokens]++;
      }
      generatedOffset[slot] = emitted + tokens;
      if (speculates) {
        unseen[slot] = tokens;
        rejected[slot] = 1 + drafts - tokens;
        table.drafts[slot] = nextDrafts;
      }
      if (emitted + tokens === output[slot]) state.complete(slot);
    } else if (speculates) {
      unseen[slot] = 0;
      rejected[slot] = 0;
    }
    slot = following;
  }
  addStep(interTokenLatency, ticks, emittedCounts, 1 + state.config.speculationDepth);
}
