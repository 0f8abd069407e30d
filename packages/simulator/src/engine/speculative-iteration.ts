import { randomUniform } from '../random/counter-random.ts';
import { admitWaiting, continuePrefill } from './admission.ts';
import type { EngineState } from './engine-state.ts';
import type { IterationPlan } from './iteration-plan.ts';
import { DECODING } from './request-table.ts';

/**
 * One iteration with speculative decoding: every decoding sequence verifies up to `speculationDepth` draft tokens and
 * emits those accepted plus one. Sequences advance by different amounts, so each is visited.
 *
 * Acceptance is drawn from the measured P(at least k accepted) by (request, tokens emitted so far), so that it does not
 * depend on what else is in the batch. Look-ahead slots are allocated before the draft and kept, as vLLM does.
 */
export function iterateSpeculative(state: EngineState, plan: IterationPlan): void {
  const { table, running, timer, counters, config } = state;
  plan.reset();
  const depth = config.speculationDepth;
  let budget = state.maxNumBatchedTokens;
  let preempted = false;

  for (let slot = running.head; slot >= 0; slot = table.next[slot]) table.given[slot] = 0;
  for (let slot = running.head; slot >= 0 && budget > 0; slot = table.next[slot]) {
    if (table.status[slot] !== DECODING) continue;
    const given = Math.min(1 + depth, budget);
    const context = table.input[slot] + table.generatedOffset[slot] - 1;
    const needed = Math.max(0, state.blocksFor(context + given) - table.blocks[slot]);
    let self = false;
    while (needed > state.freeBlocks && !self) {
      const victim = state.victim();
      self = victim === slot;
      if (self) plan.partialStalled = table.next[slot] >= 0;
      preempted = true;
      budget += table.given[victim];
      table.given[victim] = 0;
      state.preempt(victim);
    }
    if (self) break;
    state.freeBlocks -= needed;
    table.blocks[slot] += needed;
    table.given[slot] = given;
    budget -= given;
  }

  budget = continuePrefill(state, plan, budget);
  if (!preempted) admitWaiting(state, plan, budget);
  for (let i = 0; i < plan.joining.count; i++) table.given[plan.joining.slots[i]] = 1;

  let verified = 0;
  let sequences = 0;
  let drafting = 0;
  let context = 0;
  for (let slot = running.head; slot >= 0; slot = table.next[slot]) {
    const given = table.given[slot];
    if (given === 0 || table.status[slot] !== DECODING) continue;
    sequences++;
    verified += given;
    if (given > 1) drafting++;
    context += table.input[slot] + table.generatedOffset[slot] - 1 + given;
  }
  if (verified + plan.prefillTokens === 0) return;

  let ticks =
    timer.fixedTicks(verified + plan.prefillTokens, sequences, plan.attention) + timer.contextTicks * context;
  if (drafting > 0 && state.draftTimer !== null) ticks += state.draftTimer.ticks(depth, drafting, context);
  state.now += ticks;
  counters.iterations++;
  counters.busyTicks += ticks;

  for (let slot = running.head; slot >= 0; ) {
    const following = table.next[slot];
    const given = table.given[slot];
    if (given > 0 && table.status[slot] === DECODING) emit(state, slot, given, ticks);
    slot = following;
  }
  for (let i = 0; i < plan.finishing.count; i++) state.finishPrefill(plan.finishing.slots[i]);
}

function emit(state: EngineState, slot: number, given: number, ticks: number): void {
  const { table, counters } = state;
  const emitted = table.generatedOffset[slot];
  const drafts = given - 1;
  const accepted = drafts === 0 ? 0 : acceptedDrafts(state, table.id[slot], emitted, drafts);
  const tokens = Math.min(1 + accepted, table.output[slot] - emitted);
  counters.draftTokens += drafts;
  counters.acceptedTokens += accepted;
  counters.outputTokens += tokens;
  if (table.transferred[slot] === 1) {
    table.transferred[slot] = 0;
    state.interTokenLatency.add(state.now - table.lastToken[slot], 1);
  } else {
    state.interTokenLatency.add(ticks / tokens, tokens);
  }
  table.generatedOffset[slot] = emitted + tokens;
  if (emitted + tokens === table.output[slot]) state.complete(slot);
}

function acceptedDrafts(state: EngineState, id: number, emitted: number, drafts: number): number {
  const survival = state.config.survival;
  const draw = randomUniform(state.acceptanceKey, id, emitted);
  let accepted = 0;
  while (accepted < drafts && draw < survival[accepted]) accepted++;
  return accepted;
}
