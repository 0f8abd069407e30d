import { wrongSetting } from '../simulator-error.ts';
import {
  checkEngineConfig,
  type EngineConfig,
  type EngineOptions,
  type EngineRole,
  engineSettings,
  expectInteger,
  type IterationSpan,
  MAX_REQUEST_TOKENS,
  MAX_SPECULATION_DEPTH,
} from './engine-config.ts';
import {
  type CompletionLog,
  type EngineCounters,
  type EngineRequest,
  type FirstTokenLog,
  type RequestProgress,
  zeroCounters,
} from './engine-log.ts';
import { type EngineSnapshot, restoreSnapshot, takeSnapshot } from './engine-snapshot.ts';
import { EngineState } from './engine-state.ts';
import type { FrontEnd } from './front-end.ts';
import { iterateInOrder } from './in-order-iteration.ts';
import { IterationPlan } from './iteration-plan.ts';
import type { LatencyHistogram } from './latency-histogram.ts';
import { iterateLockstep, skipDecodes } from './lockstep-iteration.ts';
import type { PromptPrefix } from './prefix-cache.ts';
import { RequestOverhead } from './request-overhead.ts';
import { ARRIVING, DECODING, ENDED, FUTURE } from './request-table.ts';
import { iterateVerifyBatch, skipVerifySteps } from './verify-iteration.ts';
import { PRIORITY_CLASSES } from './waiting-queue.ts';

/**
 * One vLLM V1 engine: iteration-level continuous batching with chunked prefill, KV blocks and recompute preemption.
 *
 * Each iteration gives every decoding sequence a token (or 1 + depth tokens to verify), continues the one prefill
 * that may be incomplete, then admits waiting requests in order while the token budget, the sequence cap and the KV
 * blocks allow. A request is admitted when its whole prompt fits, and takes blocks chunk by chunk. When a block cannot be
 * allocated, the last of the running list (`fcfs`) or the worst by class and age (`priority`) is preempted, its KV is
 * recomputed later but for what is still cached, and nothing is admitted in that iteration.
 *
 * While only decodes run, all iterations up to the next completion, relevant arrival, block shortage or time limit
 * are taken in one step, by a closed form that gives the same ticks as taking them one by one.
 */
export class Engine {
  declare private readonly state: EngineState;
  private readonly plan = new IterationPlan();
  declare private readonly overhead: RequestOverhead;
  private readonly onIterations: ((span: IterationSpan) => void) | undefined;
  /** Whether a front end, the caller, or a scheduler that looks for arrivals now and then follows the iterations. */
  declare private readonly isObserved: boolean;
  /** Tick until which decodes go on that nobody has asked for yet. */
  private owed = Number.NEGATIVE_INFINITY;

  /** @throws SimulatorError when an option or the configuration is out of range. */
  constructor(config: EngineConfig, options: EngineOptions = {}) {
    const settings = engineSettings(options);
    checkEngineConfig(config, settings.maxNumBatchedTokens);
    this.overhead = new RequestOverhead(settings);
    this.onIterations = settings.onIterations;
    this.state = new EngineState(config, settings);
    const { frontEnd, onIterations, schedulerRecvInterval } = settings;
    this.isObserved = frontEnd !== undefined || onIterations !== undefined || schedulerRecvInterval > 1;
  }

  /** The state at the tick that the engine was run to, where all may depend on it. */
  private get current(): EngineState {
    const { owed, state } = this;
    if (owed > Number.NEGATIVE_INFINITY) this.serveUntil(owed, Number.POSITIVE_INFINITY);
    // Whoever asks may change it.
    state.quietUntil = Number.NEGATIVE_INFINITY;
    return state;
  }

  /** Current tick. An iteration under way when the clock passed a limit has been counted in full. */
  get now(): number {
    return this.current.now;
  }
  get completions(): CompletionLog {
    return this.state.completions;
  }
  get firstTokens(): FirstTokenLog {
    return this.state.firstTokens;
  }
  /** Ids of the requests refused because they can never fit the KV pool. */
  get rejections(): readonly number[] {
    return this.state.rejections;
  }
  /**
   * Inter-token latencies, one sample a token: the duration of its iteration, or the whole gap after a preemption or
   * a transfer; a verify step of t that emits n tokens gives n samples of t / n.
   */
  get interTokenLatency(): LatencyHistogram {
    this.current.stepLatencies.flush();
    return this.current.interTokenLatency;
  }
  get counters(): EngineCounters {
    return this.current.counters;
  }
  /** Requests that have arrived and wait for admission. */
  get waitingCount(): number {
    return this.state.waiting.count;
  }
  /** Requests that prefill or decode. */
  get runningCount(): number {
    return this.state.running.count - this.state.ended.count;
  }
  /** Tick at which the next iteration begins; `Infinity` while there is nothing that could be served. */
  get nextIteration(): number {
    const { running, waiting, future, table, admitting, now } = this.current;
    if (running.count > 0) return now;
    if (!admitting) return Number.POSITIVE_INFINITY;
    if (waiting.count > 0) return now;
    return future.count > 0 ? Math.max(now, table.visible[future.head]) : Number.POSITIVE_INFINITY;
  }
  /** Prompt tokens that were computed here or found in the cache. */
  get promptTokens(): number {
    return this.state.counters.prefillTokens + this.state.counters.cachedTokens;
  }
  /** Requests submitted that have not arrived yet. */
  get futureCount(): number {
    return this.state.future.count;
  }
  get kvBlocksTotal(): number {
    return this.state.config.kvBlocks;
  }
  get kvBlocksUsed(): number {
    return this.current.config.kvBlocks - this.current.pool.free;
  }
  /** Tokens of long sequences that the KV cache has room for. */
  get kvTokens(): number {
    return this.state.pool.tokensIn(this.kvBlocksTotal);
  }
  /** Tokens at the start of a prompt whose KV is there now. */
  heldTokens(prefix: PromptPrefix, input: number): number {
    return this.current.pool.heldTokens(prefix, input);
  }
  /** Most KV blocks that a request of so many tokens holds at once. */
  blocksOfRequest(tokens: number): number {
    return this.state.pool.blocksOfRequest(tokens);
  }
  get role(): EngineRole {
    return this.state.role;
  }
  get config(): EngineConfig {
    return this.state.config;
  }

  /**
   * Adds a request. Requests are submitted in order of arrival.
   * @throws SimulatorError naming the field that is out of range.
   */
  submit(request: EngineRequest): void {
    const state = this.current;
    const { priority = 0, adapter = 0 } = request;
    expectInteger('ENGINE_REQUEST', 'input', request.input, 1, MAX_REQUEST_TOKENS);
    expectInteger('ENGINE_REQUEST', 'output', request.output, 1, MAX_REQUEST_TOKENS);
    expectInteger('ENGINE_REQUEST', 'priority', priority, 0, PRIORITY_CLASSES - 1);
    expectInteger('ENGINE_REQUEST', 'adapter', adapter, 0, 2 ** 30);
    if (!(request.arrival >= state.lastArrival)) {
      const expected = `no earlier than tick ${state.lastArrival}`;
      throw wrongSetting('ENGINE_REQUEST', 'arrival', expected, request.arrival);
    }
    state.lastArrival = request.arrival;
    if (state.frontEnd === null) {
      state.enqueue(request, request.arrival + this.overhead.ticks(request.id, request.input));
    } else {
      const slot = state.enqueue(request, request.arrival);
      state.table.status[slot] = ARRIVING;
    }
  }

  /** Tick at which the client of a request has the tokens that it got in the iteration that ended last. */
  deliveredTo(id: number): number {
    return this.current.frontEnd === null ? this.now : this.current.frontEnd.deliveredTo(id);
  }

  /**
   * Adds a request that another engine has prefilled and whose KV is here at tick `ready`. It is recomputed only if it
   * is preempted here.
   */
  submitTransferred(request: RequestProgress, ready: number): void {
    this.current.enqueueProgress(request, ready, 1);
  }

  /** Adds a request that another engine gave up, to be (re)computed here. */
  resubmit(request: RequestProgress): void {
    this.current.enqueueProgress(request, request.visible, 0);
  }

  /** The requests whose prefill finished here since the last call; only a `prefill` engine has any. */
  takeHandovers(): readonly RequestProgress[] {
    const taken = this.current.handovers;
    this.current.handovers = [];
    return taken;
  }

  /**
   * Forgets a request that its client gave up; its KV blocks are free at once, or, when an iteration has been scheduled
   * ahead that may have it, behind that one. It appears in no log.
   * @returns whether there was a request of that id
   */
  abort(id: number): boolean {
    const state = this.current;
    const { table, running, waiting, future, aborted } = state;
    for (const list of [running, waiting, future]) {
      for (let slot = list.head; slot >= 0; slot = table.next[slot]) {
        if (table.id[slot] !== id || table.status[slot] === ENDED) continue;
        if (aborted.has(slot)) return false;
        if (state.isScheduledAhead && list !== future) aborted.push(slot);
        else state.drop(slot);
        return true;
      }
    }
    return false;
  }

  /** Takes out all requests that do not run, in order of visibility, to be given to another engine. */
  withdrawWaiting(): RequestProgress[] {
    this.current.settle();
    this.takeUpArrivals(Number.POSITIVE_INFINITY);
    const { table, waiting, future } = this.current;
    const taken: RequestProgress[] = [];
    for (const list of [waiting, future]) {
      for (let slot = list.head; slot >= 0; slot = list.head) {
        taken.push(this.current.progressOf(slot));
        list.remove(slot);
        table.free(slot);
      }
    }
    return taken.sort((a, b) => a.visible - b.visible || a.id - b.id);
  }

  /**
   * Changes caps, pool, policy, speculation or law, from the next iteration on. Shrinking the pool below its use
   * preempts at once.
   * @throws SimulatorError, and changes nothing, when a value is out of range.
   */
  configure(config: EngineConfig): void {
    const state = this.current;
    checkEngineConfig(config, state.settings.maxNumBatchedTokens);
    state.settle();
    const speculative = config.speculationDepth > 0;
    const { speculationDepth, survival } = state.config;
    // What is drawn ahead holds for as long as the depth and the acceptance do.
    if (config.speculationDepth !== speculationDepth || config.survival !== survival) {
      state.verifications.deactivate();
    }
    if (state.speculative !== speculative) this.changeDecodeMode(speculative);
    const grown = config.kvBlocks - state.config.kvBlocks;
    state.adopt(config);
    if (grown > 0) {
      state.pool.give(grown);
    } else {
      while (state.pool.free < -grown) state.preempt(state.victim());
      state.pool.take(-grown);
    }
  }

  /** Stops or resumes admission; what runs goes on. */
  setAdmitting(admitting: boolean): void {
    this.current.admitting = admitting;
  }

  /** Role for prefills that end from now on, see `EngineOptions.role`. */
  setRole(role: EngineRole): void {
    this.current.role = role;
  }

  /** Loses all KV, also what is on its way here: everything that runs is preempted, nothing is served for `ticks`. */
  restart(ticks: number): void {
    const { running, waiting, future, table } = this.current;
    this.current.settle();
    while (running.count > 0) this.current.preempt(running.tail);
    for (const list of [waiting, future]) {
      for (let slot = list.head; slot >= 0; slot = table.next[slot]) table.transferred[slot] = 0;
    }
    this.current.pool.clearCache();
    this.current.pauseUntil(this.current.now + ticks);
  }

  /**
   * Runs until the clock reaches `limit` (ticks), or, with `Infinity`, until nothing is left to do.
   * @param answers Requests that complete or are refused after which it stops earlier, with the iteration they end in.
   */
  runUntil(limit: number, answers = Number.POSITIVE_INFINITY): void {
    if (limit <= this.state.quietUntil && !this.isObserved) this.owed = Math.max(this.owed, limit);
    else this.serveUntil(limit, answers);
  }

  private serveUntil(limit: number, answers: number): void {
    const { state } = this;
    this.owed = Number.NEGATIVE_INFINITY;
    const { completions, rejections } = state;
    const enough = completions.count + rejections.length + answers;
    while (state.now < limit && completions.count + rejections.length < enough) {
      if (state.isNextVisible || state.frontEnd !== null) this.receiveArrivals();
      if (state.running.count === 0 && (state.waiting.count === 0 || !state.admitting)) {
        const next =
          state.admitting && state.future.count > 0
            ? state.table.visible[state.future.head]
            : Number.POSITIVE_INFINITY;
        if (next >= limit) {
          if (limit < Number.POSITIVE_INFINITY) state.pauseUntil(limit);
          break;
        }
        state.pauseUntil(Math.max(next, state.now));
        continue;
      }
      this.advance(limit);
    }
    this.receiveArrivals(limit);
  }

  /** Admits nothing and runs until the running list is empty (answers true) or the clock reaches `limit`. */
  drainUntil(limit: number): boolean {
    const state = this.current;
    state.admitting = false;
    while (state.running.count > 0 && state.now < limit) {
      this.takeUpArrivals(state.now);
      this.advance(limit);
    }
    return state.running.count === 0;
  }

  /** Serves until nothing is left to do or the clock reaches `limit`; the clock stays at the last iteration's end. */
  runUntilIdle(limit: number): void {
    while (this.now < limit && this.runningCount + this.waitingCount + this.futureCount > 0) {
      const idle = this.runningCount + this.waitingCount === 0;
      const next = idle ? this.current.table.visible[this.current.future.head] : this.current.now;
      if (next >= limit) return;
      if (idle) this.current.pauseUntil(Math.max(next, this.current.now));
      this.receiveArrivals();
      this.advance(limit);
    }
  }

  /** Lets the clock of an engine that has nothing to run pass to `tick`. */
  idleUntil(tick: number): void {
    if (this.current.running.count === 0 && this.current.now < tick) this.current.pauseUntil(tick);
    this.receiveArrivals();
  }

  /** Moves the origin of the clock: every tick is smaller by `ticks` from now on. The logs keep the old origin. */
  shiftClock(ticks: number): void {
    this.current.now -= ticks;
    this.current.lastStart -= ticks;
    this.current.lastArrival -= ticks;
    this.current.frontEnd?.shiftClock(ticks);
    this.current.table.shiftClock(ticks);
  }

  /** Empties the logs of requests: completions, first tokens and rejections. */
  clearAnswers(): void {
    this.state.completions.clear();
    this.state.firstTokens.clear();
    this.state.rejections.length = 0;
  }

  /** Empties logs, histogram and counters. */
  clearLogs(): void {
    const state = this.current;
    this.clearAnswers();
    state.stepLatencies.flush();
    state.interTokenLatency.clear();
    Object.assign(state.counters, zeroCounters());
  }

  /** Calls `visit` for every request that has arrived and waits. */
  forEachWaiting(visit: (id: number, arrival: number, firstToken: number) => void): void {
    const { table, waiting } = this.current;
    for (let slot = waiting.head; slot >= 0; slot = table.next[slot]) {
      visit(table.id[slot], table.arrival[slot], table.firstToken[slot]);
    }
  }

  /** Calls `visit` for every running request with the KV blocks it holds and the tokens it has emitted. */
  forEachRunning(
    visit: (id: number, arrival: number, firstToken: number, kvBlocks: number, emitted: number) => void,
  ): void {
    const state = this.current;
    const { table, running } = state;
    for (let slot = running.head; slot >= 0; slot = table.next[slot]) {
      if (table.status[slot] === ENDED) continue;
      const { id, arrival, firstToken } = table;
      visit(id[slot], arrival[slot], firstToken[slot], state.blocksHeld(slot), state.emittedBy(slot));
    }
  }

  /** All that decides the future: not the logs, histogram and counters, which tell of the past. */
  snapshot(): EngineSnapshot {
    return takeSnapshot(this.current);
  }

  /** Goes back to where `snapshot` was taken, with empty logs. */
  restore(snapshot: EngineSnapshot): void {
    restoreSnapshot(this.current, snapshot);
    this.clearLogs();
  }

  private advance(limit: number): void {
    const { state } = this;
    if (this.isObserved) this.advanceObserved(limit);
    else this.iterate(limit);
    if (state.aborted.count > 0) state.dropAborted();
    if (state.isEmptyAhead) {
      state.releaseEnded();
      state.pauseUntil(state.now);
    }
  }

  /** Advances, and counts the iterations of decodes since the scheduler looked for arrivals. */
  private advanceObserved(limit: number): void {
    const { state } = this;
    const { iterations, prefillTokens } = state.counters;
    if (state.frontEnd !== null) this.iterateAndStream(limit, state.frontEnd);
    else this.iterateObserved(limit);
    const decoded = state.sinceReceived + state.counters.iterations - iterations;
    const prefilled = state.counters.prefillTokens > prefillTokens;
    state.sinceReceived = prefilled ? 0 : decoded % state.settings.schedulerRecvInterval;
  }

  /** Takes the next iteration, or as many as can be skipped. */
  private iterate(limit: number): void {
    const { state, plan } = this;
    plan.isPrefillOnly = state.prefillsFirst && state.prefillsNext;
    if (
      !plan.isPrefillOnly &&
      !state.outOfOrder &&
      (state.speculative ? this.verify(limit) : this.decode(limit))
    )
      return;
    state.verifications.deactivate();
    state.decodes.deactivate(state.running.head, state.unknownTokens);
    plan.reset(state.mostTokens());
    iterateInOrder(state, plan);
  }

  /** The next iterations of the decodes in lockstep. Answers whether any was taken. */
  private decode(limit: number): boolean {
    const { state, plan } = this;
    if (!state.decodes.active) state.activateDecodes();
    if (state.onlyDecodes && skipDecodes(state, limit)) return true;
    plan.reset(state.mostTokens());
    return iterateLockstep(state, plan);
  }

  /** The next verify steps of all decodes together. Answers whether any was taken. */
  private verify(limit: number): boolean {
    const { state, plan } = this;
    // Each sequence has a reach, or drafts, of its own.
    if (state.verifiesAhead || state.draftsByBatchSize) return false;
    // Who fills a block with a name first decides which block is found. A front end has to know the tokens of each iteration.
    const skippable = !state.pool.namesAnswers && state.frontEnd === null;
    if (skippable && state.onlyDecodes && skipVerifySteps(state, limit)) return true;
    plan.reset(state.mostTokens());
    return iterateVerifyBatch(state, plan);
  }

  /** Iterates, and moves the times in the logs to those at which the front end has streamed the tokens. */
  private iterateAndStream(limit: number, frontEnd: FrontEnd): void {
    const { state } = this;
    const { counters, completions, firstTokens, begun, table } = state;
    const { iterations, outputTokens } = counters;
    const start = state.now;
    const completed = completions.count;
    const answered = firstTokens.count;
    const handedOver = state.handovers.length;
    begun.count = 0;
    this.iterateObserved(limit);
    const count = counters.iterations - iterations;
    if (count === 0) return;
    const { now: end, lastStart } = state;
    frontEnd.stream({ count, tokens: counters.outputTokens - outputTokens, start, end, lastStart });
    for (let i = answered; i < firstTokens.count; i++) {
      firstTokens.firstTokens[i] = frontEnd.deliveredTo(firstTokens.ids[i]);
    }
    for (let i = 0; i < begun.count; i++) {
      const slot = begun.slots[i];
      table.firstToken[slot] = frontEnd.deliveredTo(table.id[slot]);
    }
    for (let i = completed; i < completions.count; i++) {
      const last = frontEnd.deliveredTo(completions.ids[i]);
      if (completions.outputs[i] === 1) completions.firstTokens[i] = last;
      // Another front end may have streamed its first token.
      completions.lastTokens[i] = Math.max(last, completions.firstTokens[i]);
    }
    for (let i = handedOver; i < state.handovers.length; i++) {
      const handover = state.handovers[i];
      state.handovers[i] = { ...handover, firstToken: frontEnd.deliveredTo(handover.id) };
    }
  }

  private iterateObserved(limit: number): void {
    const { counters } = this.state;
    const { iterations, prefillTokens } = counters;
    const start = this.now;
    const before = this.runningCount;
    this.iterate(limit);
    if (counters.iterations === iterations) return;
    this.onIterations?.({
      start,
      end: this.now,
      iterations: counters.iterations - iterations,
      prefillTokens: counters.prefillTokens - prefillTokens,
      runningBefore: before,
      waiting: this.waitingCount,
      running: this.runningCount,
      kvBlocksUsed: this.kvBlocksUsed,
    });
  }

  /** @param limit Tick until which all arrivals are known. */
  private receiveArrivals(limit = Number.POSITIVE_INFINITY): void {
    const { state } = this;
    if (state.frontEnd === null) {
      state.receive(state.scheduledAt);
      return;
    }
    this.takeUpArrivals(state.now);
    // A request that arrives behind `limit` may leave the front end before one that arrived earlier.
    state.receive(Math.min(state.scheduledAt, limit));
  }

  private takeUpArrivals(tick: number): void {
    const { state, overhead } = this;
    const { frontEnd, table, future } = state;
    if (frontEnd === null) return;
    const { id, arrival, input, visible, status } = table;
    for (let slot = future.head; slot >= 0 && visible[slot] <= tick; ) {
      const following = table.next[slot];
      if (status[slot] === ARRIVING) {
        const work = frontEnd.requestTicks(input[slot]);
        const begin = frontEnd.takeUp(id[slot], arrival[slot], input[slot]);
        future.remove(slot);
        visible[slot] = begin + Math.max(work, overhead.ticks(id[slot], input[slot]));
        status[slot] = FUTURE;
        state.insertFuture(slot);
      }
      slot = following;
    }
  }

  /** In lockstep the state of the decodes is implied by a shared clock; with speculation each request holds its own. */
  private changeDecodeMode(speculative: boolean): void {
    const { table, running, decodes, pool } = this.state;
    decodes.deactivate(running.head, this.state.unknownTokens);
    for (let slot = running.head; slot >= 0; slot = table.next[slot]) {
      table.unseen[slot] = 0;
      table.rejected[slot] = 0;
      table.drafts[slot] = MAX_SPECULATION_DEPTH;
      if (speculative) continue;
      // The look-ahead blocks beyond the context go back to the pool.
      const context = table.input[slot] + table.generatedOffset[slot] - 1;
      const needed = this.state.blocksFor(table.status[slot] === DECODING ? context : table.computed[slot]);
      pool.resize(slot, needed);
    }
  }
}
