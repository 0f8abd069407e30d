import { admitWaiting, continuePrefill, planChunk } from './admission.ts';
import type { EngineState } from './engine-state.ts';
import type { IterationPlan } from './iteration-plan.ts';
import { DECODING } from './request-table.ts';
import { addStep } from './step-latencies.ts';

/**
 * One iteration with speculative decoding that may run short of KV blocks or token budget: every decoding sequence
 * verifies up to `speculationDepth` draft tokens and emits those accepted plus one. Each is visited.
 *
 * Look-ahead slots are allocated before the draft and kept, as vLLM does.
 */
export function iterateSpeculative(state: EngineState, plan: IterationPlan): void {
  const { timer, counters, config } = state;
  plan.reset();
  const step = scheduleVerification(state, plan);
  if (state.pool.namesAnswers) fillGiven(state);
  const budget = state.maxNumBatchedTokens - step.tokens - continuePrefill(state, plan);
  if (!step.preempted) admitWaiting(state, plan, budget);
  for (let i = 0; i < plan.joining.count; i++) schedule(state, step, plan.joining.slots[i], 1);
  if (step.tokens + plan.prefillTokens === 0) return;

  const tokens = step.tokens + plan.prefillTokens;
  let ticks =
    timer.fixedTicks(tokens, step.sequences, plan.attention) +
    timer.contextTicks(step.sequences, plan.prefillTokens) * step.context;
  if (step.drafting > 0 && state.draftTimer !== null) {
    ticks += state.draftTimer.ticks(config.speculationDepth, step.drafting, step.context);
  }
  state.lastStart = state.now;
  state.now += ticks;
  counters.iterations++;
  counters.busyTicks += ticks;
  emitVerified(state, plan.emittedCounts, ticks);
  for (let i = 0; i < plan.finishing.count; i++) state.finishPrefill(plan.finishing.slots[i]);
}

/** What the verification of one iteration adds up to. */
interface Verification {
  tokens: number;
  sequences: number;
  /** Sequences with at least one draft token. */
  drafting: number;
  /** Context tokens, those under verification included. */
  context: number;
  preempted: boolean;
}

/**
 * Gives the decoding sequences, in order, tokens to verify and the blocks for them, and sees that the incomplete
 * prefill has its blocks; preempts when there are too few.
 */
function scheduleVerification(state: EngineState, plan: IterationPlan): Verification {
  const { table, running, config } = state;
  let step: Verification = { tokens: 0, sequences: 0, drafting: 0, context: 0, preempted: false };
  const wanted = 1 + config.speculationDepth;
  for (let slot = running.head; slot >= 0; slot = table.next[slot]) {
    const decoding = table.status[slot] === DECODING;
    const given = Math.min(wanted, state.maxNumBatchedTokens - step.tokens);
    if (given === 0) break;
    const reach = table.input[slot] + table.generatedOffset[slot] - 1 + given;
    const needed = decoding
      ? Math.max(0, state.blocksFor(reach) - table.blocks[slot])
      : planChunk(state, plan, state.maxNumBatchedTokens - step.tokens);
    while (needed > state.pool.free) {
      const victim = state.victim();
      // vLLM gives up on the rest of the list when a request has to preempt itself.
      if (victim === slot) plan.partialStalled = table.next[slot] >= 0;
      state.preempt(victim, Math.min(1, table.given[victim]));
      table.given[victim] = 0;
      step = scheduled(state);
      if (victim === slot) return step;
    }
    // The blocks of a chunk are taken with the chunk.
    if (!decoding) break;
    state.pool.take(needed);
    table.blocks[slot] += needed;
    schedule(state, step, slot, given);
  }
  return step;
}

function schedule({ table }: EngineState, step: Verification, slot: number, given: number): void {
  table.given[slot] = given;
  step.tokens += given;
  step.sequences++;
  if (given > 1) step.drafting++;
  step.context += table.input[slot] + table.generatedOffset[slot] - 1 + given;
}

/** Lets others find what the decodes with tokens to verify fill in this iteration. */
function fillGiven({ table, running, pool }: EngineState): void {
  const { input, generatedOffset, given, next } = table;
  for (let slot = running.head; slot >= 0; slot = next[slot]) {
    if (given[slot] > 0) pool.fill(slot, input[slot] + generatedOffset[slot]);
  }
}

/** What is left of the verification after a preemption. */
function scheduled(state: EngineState): Verification {
  const { table, running } = state;
  const step: Verification = { tokens: 0, sequences: 0, drafting: 0, context: 0, preempted: true };
  for (let slot = running.head; slot >= 0; slot = table.next[slot]) {
    if (table.given[slot] > 0) schedule(state, step, slot, table.given[slot]);
  }
  return step;
}

/** Draws the accepted tokens of every sequence that was given any, and takes the given tokens back. */
function emitVerified(state: EngineState, emittedCounts: Float64Array, ticks: number): void {
  const { table, counters, running, interTokenLatency } = state;
  const { input, output, generatedOffset, computed, given, id, transferred, next, lastToken, verifySteps } =
    table;
  const { acceptance } = state;
  let drafted = 0;
  let acceptedDrafts = 0;
  let emittedTokens = 0;
  emittedCounts.fill(0);
  for (let slot = running.head; slot >= 0; ) {
    const following = next[slot];
    const drafts = given[slot] - 1;
    if (drafts >= 0) {
      given[slot] = 0;
      const emitted = generatedOffset[slot];
      const key = acceptance.requestKey(id[slot]);
      const accepted = drafts === 0 ? 0 : acceptance.accepted(key, verifySteps[slot]++, drafts);
      const tokens = Math.min(1 + accepted, output[slot] - emitted);
      drafted += drafts;
      acceptedDrafts += accepted;
      emittedTokens += tokens;
      if (transferred[slot] === 1) {
        transferred[slot] = 0;
        interTokenLatency.add(state.now - lastToken[slot], 1);
      } else {
        emittedCounts[tokens]++;
      }
      computed[slot] = input[slot] + emitted;
      generatedOffset[slot] = emitted + tokens;
      if (emitted + tokens === output[slot]) state.complete(slot);
    }
    slot = following;
  }
  counters.draftTokens += drafted;
  counters.acceptedTokens += acceptedDrafts;
  counters.outputTokens += emittedTokens;
  addStep(interTokenLatency, ticks, emittedCounts, 1 + state.config.speculationDepth);
}
