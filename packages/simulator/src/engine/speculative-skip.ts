import { MAX_SPECULATION_DEPTH } from './engine-config.ts';
import type { EngineState } from './engine-state.ts';

/** Verify steps looked ahead at once: enough to amortise the visit of a sequence, few enough to waste little. */
const LOOK_AHEAD = 16;
const WIDTH = MAX_SPECULATION_DEPTH + 2;

/** Scratch of one look-ahead. Step j of the i-th running sequence is entry `i * LOOK_AHEAD + j`. */
export class VerifyForecast {
  /** Tokens emitted by the end of a step, those before the look-ahead included. */
  emitted: Int32Array = new Int32Array(64 * LOOK_AHEAD);
  /** Sequences that emit t tokens in step j: entry `j * WIDTH + t`. */
  readonly emitting = new Int32Array(LOOK_AHEAD * WIDTH);
  /** Accepted tokens that a step throws away because the output ends before them. */
  readonly surplus = new Int32Array(LOOK_AHEAD);
  /** New KV blocks that a step needs. */
  readonly blocks = new Int32Array(LOOK_AHEAD);

  reset(sequences: number): void {
    if (sequences * LOOK_AHEAD > this.emitted.length)
      this.emitted = new Int32Array(2 * sequences * LOOK_AHEAD);
    this.emitting.fill(0);
    this.surplus.fill(0);
    this.blocks.fill(0);
  }
}

/**
 * Takes several verify steps at once: sequence by sequence instead of step by step, which gives the same draws because
 * they belong to (request, verify step). Up to the next completion, the next arrival that could be admitted, the next
 * block shortage or `limit`. Only while nothing but decodes runs and the head of the queue cannot be admitted.
 * @returns whether it got anywhere; if not, the next step is short of blocks or of token budget.
 */
export function skipVerifySteps(state: EngineState, forecast: VerifyForecast, limit: number): boolean {
  const { running, timer, counters, config, draftTimer, pool } = state;
  const sequences = running.count;
  const given = 1 + config.speculationDepth;
  if (sequences * given > state.maxNumBatchedTokens || draftTimer === null) return false;

  const until = state.nextInterruption(limit);
  const fixed = timer.fixedTicks(sequences * given, sequences, 0);
  const perContext = timer.contextTicks(sequences);
  let context = contextOf(state) + sequences * given;
  // Steps only get longer, so no more than these fit before the interruption.
  const shortest = fixed + perContext * context;
  const affordable = Math.ceil((until - state.now) / shortest);
  const steps = lookAhead(state, forecast, given, Math.min(LOOK_AHEAD, affordable));

  let step = 0;
  for (; step < steps && state.now < until; step++) {
    if (forecast.blocks[step] > pool.free) break;
    pool.take(forecast.blocks[step]);
    const ticks =
      fixed + perContext * context + draftTimer.ticks(config.speculationDepth, sequences, context);
    state.now += ticks;
    counters.iterations++;
    counters.busyTicks += ticks;
    let tokens = 0;
    for (let t = 1; t <= given; t++) {
      const emitting = forecast.emitting[step * WIDTH + t];
      if (emitting === 0) continue;
      tokens += t * emitting;
      state.interTokenLatency.add(ticks / t, t * emitting);
    }
    context += tokens;
    counters.outputTokens += tokens;
    counters.draftTokens += sequences * config.speculationDepth;
    counters.acceptedTokens += tokens - sequences + forecast.surplus[step];
  }
  if (step > 0) commit(state, forecast, given, step);
  return step > 0;
}

function contextOf({ running, table }: EngineState): number {
  let sum = 0;
  for (let slot = running.head; slot >= 0; slot = table.next[slot]) {
    sum += table.input[slot] + table.generatedOffset[slot] - 1;
  }
  return sum;
}

/** Draws the next steps of every sequence. Answers how many there are up to the first completion, at most `most`. */
function lookAhead(state: EngineState, forecast: VerifyForecast, given: number, most: number): number {
  const { running, table, blockTokens, acceptance } = state;
  forecast.reset(running.count);
  const { emitted, emitting, surplus, blocks } = forecast;
  let steps = most;
  let row = 0;
  for (let slot = running.head; slot >= 0; slot = table.next[slot]) {
    const id = table.id[slot];
    const output = table.output[slot];
    const before = table.input[slot] - 1 + given;
    const firstStep = table.verifySteps[slot];
    let tokensSoFar = table.generatedOffset[slot];
    let room = table.blocks[slot] * blockTokens;
    for (let step = 0; step < steps; step++) {
      const reach = before + tokensSoFar;
      if (reach > room) {
        const needed = Math.ceil((reach - room) / blockTokens);
        blocks[step] += needed;
        room += needed * blockTokens;
      }
      let tokens = 1 + acceptance.accepted(id, firstStep + step, given - 1);
      if (tokensSoFar + tokens >= output) {
        surplus[step] += tokensSoFar + tokens - output;
        tokens = output - tokensSoFar;
        steps = step + 1;
      }
      tokensSoFar += tokens;
      emitting[step * WIDTH + tokens]++;
      emitted[row + step] = tokensSoFar;
    }
    row += LOOK_AHEAD;
  }
  return steps;
}

/** Moves every sequence by `steps` and completes those that are done. */
function commit(state: EngineState, forecast: VerifyForecast, given: number, steps: number): void {
  const { running, table } = state;
  let row = 0;
  for (let slot = running.head; slot >= 0; row += LOOK_AHEAD) {
    const following = table.next[slot];
    const beforeLast = steps > 1 ? forecast.emitted[row + steps - 2] : table.generatedOffset[slot];
    const held = state.blocksFor(table.input[slot] - 1 + beforeLast + given);
    if (held > table.blocks[slot]) table.blocks[slot] = held;
    table.verifySteps[slot] += steps;
    table.generatedOffset[slot] = forecast.emitted[row + steps - 1];
    if (table.generatedOffset[slot] === table.output[slot]) state.complete(slot);
    slot = following;
  }
}
