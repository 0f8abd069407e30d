import type { EngineState } from './engine-state.ts';
import type { IterationPlan } from './iteration-plan.ts';
import { DECODING, PREFILLED, PREFILLING } from './request-table.ts';
import { NOT_YET } from './ticks.ts';

/**
 * Decides what chunk the incomplete prefill behind all decodes gets of `budget` tokens, which is what they leave.
 * Answers the KV blocks that it lacks for it.
 */
export function planChunk(state: EngineState, plan: IterationPlan, budget: number): number {
  if (state.partials === 0) return 0;
  const slot = state.running.tail;
  const { computed, input, generatedOffset } = state.table;
  const rest = input[slot] + generatedOffset[slot] - computed[slot];
  // A budget that was lowered may be below what decodes.
  plan.partialChunk = Math.max(0, Math.min(rest, budget, plan.mostTokens));
  if (plan.partialChunk === 0) return 0;
  return Math.max(0, state.pool.missing(slot, computed[slot] + plan.partialChunk + state.lookahead));
}

/** Lets others find what the scheduled decodes fill in this iteration, where their answers have a name. */
export function fillAnswers(state: EngineState): void {
  const { input, status, next } = state.table;
  for (let slot = state.running.head; slot >= 0; slot = next[slot]) {
    if (status[slot] !== DECODING) continue;
    state.pool.fill(slot, input[slot] + state.emittedBy(slot) - state.unknownTokens);
  }
}

/** Schedules the chunk that was planned for the incomplete prefill, and takes its blocks. Answers its tokens. */
export function continuePrefill(state: EngineState, plan: IterationPlan): number {
  if (state.partials === 0) return 0;
  const slot = state.running.tail;
  const chunk = plan.partialChunk;
  const { computed, inFlight } = state.table;
  if (chunk === 0) {
    inFlight[slot] = 0;
    return 0;
  }
  state.pool.skip(slot, computed[slot] - (state.asyncScheduling ? inFlight[slot] : 0));
  schedulePrefill(state, plan, slot, chunk);
  if (state.table.computed[slot] === state.table.input[slot] + state.table.generatedOffset[slot]) {
    state.partials--;
    state.table.status[slot] = PREFILLED;
    plan.finishing.push(slot);
  }
  return chunk;
}

/**
 * Admits waiting requests in order while budget, sequence cap and KV blocks allow. A request is admitted when the free
 * blocks hold all of its prompt, but takes only those of its first chunk.
 */
export function admitWaiting(state: EngineState, plan: IterationPlan, tokens: number): void {
  const { table, waiting, running, config } = state;
  let budget = state.admitting ? tokens : 0;
  if (state.order !== null && budget > 0) state.orderWaiting(state.order);
  state.isHeadBlocked = true;
  while (budget > 0 && waiting.count > 0 && running.count < config.maxNumSeqs) {
    const slot = state.nextWaiting();
    if (slot < 0) return;
    if (state.neverFits(slot)) {
      state.reject(slot);
      continue;
    }
    const padding = state.speculative ? paddingOf(state, plan, slot) : 0;
    if (padding >= budget || state.blocksToAdmit(slot, budget, plan.mostTokens, padding) > state.pool.free)
      return;
    const cached = state.pool.admit(slot);
    waiting.remove(slot);
    running.pushBack(slot);
    table.admitted[slot] = state.admissions++;
    if (table.scheduled[slot] === NOT_YET) table.scheduled[slot] = state.now;
    if (table.transferred[slot] === 1) {
      join(state, plan, slot);
      budget--;
      continue;
    }
    table.status[slot] = PREFILLING;
    const loaded = state.pool.loadedTokens;
    table.computed[slot] = cached + loaded;
    table.rejected[slot] = padding;
    state.counters.cachedTokens += cached;
    state.counters.loadedTokens += loaded;
    plan.loadedTokens += loaded;
    const rest = table.input[slot] + table.generatedOffset[slot] - cached - loaded;
    const chunk = Math.min(rest, budget, plan.mostTokens);
    schedulePrefill(state, plan, slot, chunk);
    if (chunk < rest) {
      state.partials++;
    } else {
      table.status[slot] = PREFILLED;
      plan.finishing.push(slot);
    }
    budget -= chunk + padding;
    if (padding > 0) pad(state, plan, slot, padding);
  }
  state.isHeadBlocked = waiting.count > 0;
}

function join(state: EngineState, plan: IterationPlan, slot: number): void {
  const { table } = state;
  table.status[slot] = DECODING;
  plan.joining.push(slot);
  table.computed[slot] = table.input[slot] + table.generatedOffset[slot];
  state.growTo(slot, table.computed[slot]);
  table.inFlight[slot] = 1;
  if (state.decodes.active) state.joinDecodes(slot);
}

function pad(state: EngineState, plan: IterationPlan, slot: number, padding: number): void {
  const known = state.table.input[slot] + state.table.generatedOffset[slot];
  state.growTo(slot, known + padding + state.lookahead);
  plan.padding += padding;
  state.counters.draftTokens += padding;
}

/**
 * Slots that a waiting request is padded with, as vLLM does with one of which a single token is left: beside decodes, all
 * sequences then have the same length. None where the token budget is below a verify step, with which vLLM waits for ever.
 */
function paddingOf(state: EngineState, plan: IterationPlan, slot: number): number {
  const { table, pool, config } = state;
  if (plan.hasPrefill || table.transferred[slot] === 1 || state.draftsByBatchSize || state.prefillsFirst)
    return 0;
  if (config.speculationDepth >= state.maxNumBatchedTokens) return 0;
  const cached = pool.cachedTokens(slot);
  if (table.input[slot] + table.generatedOffset[slot] - cached !== 1) return 0;
  return plan.hasRunning || cached > 0 ? config.speculationDepth : 0;
}

function schedulePrefill(state: EngineState, plan: IterationPlan, slot: number, chunk: number): void {
  const start = state.table.computed[slot];
  state.growTo(slot, start + chunk + state.lookahead);
  state.pool.fill(slot, start + chunk);
  state.pool.store(slot, start + chunk);
  plan.prefillTokens += chunk;
  plan.attention += chunk * (start + chunk / 2);
  state.table.computed[slot] = start + chunk;
  state.table.inFlight[slot] = chunk;
  state.counters.prefillTokens += chunk;
}
