import { RequestView } from '../policy/views.ts';
import { AcceptanceSampler } from './acceptance-sampler.ts';
import { ALL_TOKENS, BlockPool } from './block-pool.ts';
import { DecodeBatch } from './decode-batch.ts';
import type { EngineConfig, EngineRole, EngineSettings, QueueOrder } from './engine-config.ts';
import {
  CompletionLog,
  type EngineCounters,
  type EngineRequest,
  FirstTokenLog,
  type RequestProgress,
  zeroCounters,
} from './engine-log.ts';
import { FrontEnd } from './front-end.ts';
import { GroupedBlockPool, isFullAttention } from './grouped-block-pool.ts';
import { DraftTimer, IterationTimer } from './iteration-timer.ts';
import { LatencyHistogram, StepLatencies } from './latency-histogram.ts';
import { ARRIVING, DECODING, ENDED, FUTURE, PREFILLING, RequestTable, WAITING } from './request-table.ts';
import { SlotBuffer } from './slot-buffer.ts';
import { SlotList } from './slot-list.ts';
import { NOT_YET, TICKS_PER_NS, TICKS_PER_S, wholeTicks } from './ticks.ts';
import { VerifyBatch } from './verify-batch.ts';
import { WaitingQueue } from './waiting-queue.ts';

/** All that an engine knows, with the few moves a request can make. The iterations are built from these. */
export class EngineState {
  now = 0;
  /** Tick at which the iteration that ended last began, or, if none has since the engine last paused, `now`. */
  lastStart = 0;
  readonly table = new RequestTable();
  readonly running = new SlotList(this.table);
  readonly future = new SlotList(this.table);
  readonly waiting = new WaitingQueue(this.table);
  /** The decoding sequences, without and with speculation. */
  declare readonly decodes: DecodeBatch;
  declare readonly verifications: VerifyBatch;
  readonly completions = new CompletionLog();
  readonly firstTokens = new FirstTokenLog();
  readonly interTokenLatency = new LatencyHistogram();
  /** Of `interTokenLatency`, what is not yet in it. */
  readonly stepLatencies = new StepLatencies(this.interTokenLatency);
  /** Ids of the requests refused since the logs were cleared. */
  readonly rejections: number[] = [];
  readonly counters: EngineCounters = zeroCounters();
  declare maxNumBatchedTokens: number;
  declare readonly settings: EngineSettings;
  declare readonly asyncScheduling: boolean;
  declare readonly frontEnd: FrontEnd | null;
  /** With a front end, the requests that got their first token in the last iteration. */
  readonly begun = new SlotBuffer();
  declare role: EngineRole;
  /** Blocks that an admission leaves free while others run. */
  declare private spareBlocks: number;
  /** Slots that a request holds behind those of an iteration, for the next drafts. */
  declare lookahead: number;
  /** Draft tokens that a step verifies for each sequence beside those of a chain. */
  declare branches: number;
  /** Whether an iteration may prefill and let the decodes wait, see `EngineOptions.prefillFirst`. */
  declare prefillsFirst: boolean;
  /** Whether a request is admitted where its whole prompt fits, whatever its first iteration computes. */
  declare private admitsWhole: boolean;
  /** Most adapters in an iteration; 0 is no limit. */
  declare private readonly maxLoras: number;
  /** Whether each iteration has to go through the requests in order. */
  declare private isAlwaysInOrder: boolean;
  /** Whether layers with a sliding window free the blocks behind it. */
  declare readonly hasWindows: boolean;

  declare config: EngineConfig;
  declare timer: IterationTimer;
  declare draftTimer: DraftTimer | null;
  declare acceptance: AcceptanceSampler;
  declare readonly pool: BlockPool;
  /** Running requests whose prefill is incomplete: several under `longPrefillTokenThreshold` alone. */
  partials = 0;
  admitting = true;
  /** Tick of arrival of the request submitted last. */
  lastArrival = Number.NEGATIVE_INFINITY;
  received = 0;
  admissions = 0;
  handovers: RequestProgress[] = [];
  /** Until this tick nothing happens but that all sequences decode on. */
  quietUntil = Number.NEGATIVE_INFINITY;
  /** Ticks for which decodes have waited for prefills that come first. */
  stalled = 0;
  /** Whether the last iteration that could admit requests left one waiting: others try before anybody asks how many blocks they lack. */
  isHeadBlocked = false;
  /** Iterations of decodes since the scheduler looked for arrivals, see `EngineOptions.schedulerRecvInterval`. */
  sinceReceived = 0;
  /** Requests whose last token has come and which hold their place and blocks until the next iteration is scheduled. */
  readonly ended = new SlotBuffer();
  /** Decodes that the last iteration left out, under a schedule ahead: the next one knows all of their tokens. */
  readonly skipped = new SlotBuffer();
  /** Decodes in lockstep whose windows have not slid yet as those of others do. */
  readonly settling = new SlotBuffer();
  /** Requests given up while they may be in the iteration that is scheduled already. */
  readonly aborted = new SlotBuffer();

  /** Order of the queue, and the requests that it orders, by slot. */
  declare readonly order: QueueOrder | null;
  views: RequestView[] = [];

  constructor(config: EngineConfig, settings: EngineSettings) {
    const { blockTokens, maxNumBatchedTokens, seed, asyncScheduling, prefixCaching, hostKv, order } =
      settings;
    this.settings = settings;
    this.frontEnd = settings.frontEnd === undefined ? null : new FrontEnd(settings.frontEnd, seed);
    this.order = order ?? null;
    this.waiting.isArranged = order !== undefined;
    this.role = settings.role;
    this.maxLoras = settings.maxLoras;
    this.waiting.passesOver = settings.maxLoras > 0;
    this.asyncScheduling = asyncScheduling;
    this.hasWindows = !settings.kvGroups.every(isFullAttention);
    this.decodes = new DecodeBatch(this.table, blockTokens, this.hasWindows);
    this.verifications = new VerifyBatch(this.table, blockTokens);
    this.pool = this.hasWindows
      ? new GroupedBlockPool(
          ...([this.table, config.kvBlocks, blockTokens, prefixCaching, settings.kvGroups] as const),
          maxNumBatchedTokens * (asyncScheduling ? 2 : 1),
        )
      : new BlockPool(this.table, config.kvBlocks, blockTokens, prefixCaching, hostKv.blocks);
    this.adopt(config);
  }

  /** Takes over a configuration, but for the number of blocks and the state of the decodes. */
  adopt(config: EngineConfig): void {
    const before: EngineConfig | undefined = this.config;
    if (config.law !== before?.law) this.timer = new IterationTimer(config.law);
    if (config.speculation !== before?.speculation) {
      this.draftTimer = config.speculation === null ? null : new DraftTimer(config.speculation);
    }
    if (config.survival !== before?.survival) {
      this.acceptance = new AcceptanceSampler(this.settings.seed, config.survival);
    }
    this.waiting.setPolicy(config.schedulingPolicy);
    this.maxNumBatchedTokens = config.maxNumBatchedTokens ?? this.settings.maxNumBatchedTokens;
    this.config = config;
    const { kvBlocks, speculationDepth, speculation } = config;
    this.branches = Math.max(0, (speculation?.verifyTokens ?? 0) - 1 - speculationDepth);
    // vLLM counts its reserved block.
    this.spareBlocks = Math.floor(this.settings.watermark * (kvBlocks + 1));
    this.lookahead = this.settings.drafter === 'eagle' ? speculationDepth : 0;
    this.pool.recomputesLastBlock = this.lookahead > 0;
    const { prefillFirst, wholePromptFits, chunkedPrefill } = this.settings;
    this.prefillsFirst = prefillFirst && wholePromptFits;
    this.admitsWhole = chunkedPrefill && wholePromptFits && this.lookahead === 0 && !this.hasWindows;
    this.isAlwaysInOrder = this.hasWindows && (this.speculative || prefillFirst);
  }

  /** Ticks by which an iteration is longer that loads the KV of so many tokens from the host. */
  loadTicks(tokens: number): number {
    return tokens === 0 ? 0 : wholeTicks(tokens * this.settings.hostKv.loadNsPerToken * TICKS_PER_NS);
  }

  /** Tick at which the scheduler composes the iteration that begins now. */
  get scheduledAt(): number {
    return this.asyncScheduling ? this.lastStart : this.now;
  }

  /** Whether the request that arrives next has arrived by the time of the schedule. */
  get isNextVisible(): boolean {
    return this.future.count > 0 && this.table.visible[this.future.head] <= this.scheduledAt;
  }

  /**
   * Whether a sequence is scheduled before the drafts of its last verify step are accepted or rejected. Those of n-grams are
   * not, as vLLM does not schedule them ahead.
   */
  get verifiesAhead(): boolean {
    return this.asyncScheduling && this.lookahead > 0;
  }

  /** Whether each sequence has the drafts that were made for it, and not the same number as all others. */
  get draftsByBatchSize(): boolean {
    return this.settings.speculationDepthPerBatchSize.length > 0 && this.speculative;
  }

  /** Draft tokens that an iteration of so many requests makes for each. */
  draftsOf(requests: number): number {
    const { speculationDepth } = this.config;
    let drafts = speculationDepth;
    for (const [first, , depth] of this.settings.speculationDepthPerBatchSize)
      if (first <= requests) drafts = depth;
    return Math.min(drafts, speculationDepth);
  }

  /** Draft tokens that were made for a decoding sequence, where they depend on the batch size. */
  draftsFor(slot: number): number {
    return Math.min(this.table.drafts[slot], this.config.speculationDepth);
  }

  /**
   * Tokens at the end of a sequence that the scheduler does not know yet when it composes the next iteration. With
   * speculation none: `verifiesAhead` knows by request.
   */
  get unknownTokens(): 0 | 1 {
    return this.asyncScheduling && !this.speculative ? 1 : 0;
  }

  get speculative(): boolean {
    return this.config.speculationDepth > 0;
  }

  blocksFor(tokens: number): number {
    return this.pool.blocksFor(tokens);
  }

  /** Takes what a request lacks of the KV blocks for `tokens`. */
  growTo(slot: number, tokens: number): void {
    const blocks = this.blocksFor(tokens);
    if (blocks > this.table.blocks[slot]) this.pool.resize(slot, blocks);
  }

  blocksHeld(slot: number): number {
    const { table, pool, decodes, verifications } = this;
    let blocks = table.blocks[slot];
    if (table.status[slot] === DECODING) {
      if (decodes.active) blocks = this.blocksFor(decodes.contextLength(slot));
      else if (verifications.has(slot)) blocks = verifications.blocksHeld(slot);
    }
    return pool.heldBy(slot, blocks);
  }

  emittedBy(slot: number): number {
    const offset = this.table.generatedOffset[slot];
    if (this.table.status[slot] !== DECODING) return offset;
    if (this.decodes.active) return offset + this.decodes.clock;
    return this.verifications.has(slot) ? this.verifications.emittedBy(slot) : offset;
  }

  /**
   * Whether a waiting request outgrows the whole pool before its last token, look-ahead slots included. Without chunked
   * prefill, vLLM does not start with a budget below its longest request.
   */
  neverFits(slot: number): boolean {
    const { input, output } = this.table;
    if (!this.settings.chunkedPrefill && input[slot] + output[slot] > this.maxNumBatchedTokens) return true;
    const most = input[slot] + output[slot] - 1 + this.config.speculationDepth + this.lookahead;
    return this.pool.blocksOfRequest(most) > this.config.kvBlocks;
  }

  /** Whether the next iterations are of decodes alone until one of them ends or a request arrives, as far as the last tells. */
  get onlyDecodes(): boolean {
    if (this.partials > 0 || this.aborted.count > 0 || this.running.count === 0) return false;
    if (this.waiting.count === 0 || !this.hasRoom) return true;
    // A policy may put another request first at any time.
    if (!this.isHeadBlocked || (this.order !== null && this.waiting.count > 1)) return false;
    return !this.headAdmissible(this.nextWaiting());
  }

  /** The request that is admitted next: the head of the queue, or the first whose adapter can be in the iteration; -1 without one. */
  nextWaiting(): number {
    return this.maxLoras === 0 ? this.waiting.head : this.nextOfAdapters();
  }

  private nextOfAdapters(): number {
    const { adapter, next, status } = this.table;
    const scheduled = new Set([0]);
    for (let slot = this.running.head; slot >= 0; slot = next[slot]) {
      if (status[slot] !== ENDED || this.isVerifiedBeyondEnd(slot)) scheduled.add(adapter[slot]);
    }
    const isFull = scheduled.size > this.maxLoras;
    let slot = this.waiting.head;
    while (isFull && slot >= 0 && !scheduled.has(adapter[slot])) slot = next[slot];
    return slot;
  }

  private get hasRoom(): boolean {
    return this.running.count < this.config.maxNumSeqs && this.admitting;
  }

  orderWaiting(order: QueueOrder): void {
    const slots = this.waiting.slots();
    if (slots.length < 2 || !this.hasRoom) return;
    const queue = slots.map((slot) => this.views[slot]);
    const slotOf = new Map(queue.map((view, i) => [view, slots[i]]));
    this.waiting.arrange(order(queue, this.now).map((view) => slotOf.get(view) as number));
  }

  /** Whether the head of the queue may be admitted (or refused for good) although nothing completes. */
  private headAdmissible(head: number): boolean {
    if (head < 0) return false;
    if (this.pool.namesAnswers && this.pool.mayFindMore(head, this.running)) return true;
    return this.blocksForHead(head) <= this.pool.free || this.neverFits(head);
  }

  /** Free blocks with which the head of the queue is admitted while all others decode. */
  blocksForHead(head: number): number {
    if (head < 0 || !this.hasRoom) return Number.POSITIVE_INFINITY;
    const tokens = this.maxNumBatchedTokens - this.running.count * (1 + this.config.speculationDepth);
    return this.blocksToAdmit(head, tokens, this.leastOfMostTokens);
  }

  /** Whether the next iteration prefills and lets the decodes wait. */
  get prefillsNext(): boolean {
    if (this.partials > 0) return true;
    if (this.waiting.count === 0 || !this.hasRoom) return false;
    const head = this.nextWaiting();
    if (head < 0 || this.table.transferred[head] === 1) return false;
    const needed = this.blocksToAdmit(head, this.maxNumBatchedTokens, this.mostTokens());
    return needed <= this.pool.free || this.neverFits(head);
  }

  /** Most tokens that a request gets in the iteration that is scheduled now. */
  mostTokens(): number {
    const { longPrefillTokenThreshold: threshold, longPrefillTokenThresholdAdaptive: adapts } = this.settings;
    if (threshold === 0) return ALL_TOKENS;
    const requests = this.running.count + this.waiting.count;
    if (requests <= 1) return ALL_TOKENS;
    return adapts ? Math.max(threshold, Math.floor(this.maxNumBatchedTokens / requests)) : threshold;
  }

  /** The smallest that `mostTokens` can be. */
  get leastOfMostTokens(): number {
    return this.settings.longPrefillTokenThreshold || ALL_TOKENS;
  }

  /** Whether decodes may stand behind an incomplete prefill, outnumber the token budget, have been left out, or free blocks. */
  get outOfOrder(): boolean {
    const { partials, running, table } = this;
    if (this.skipped.count > 0 || this.stalled > 0 || this.isAlwaysInOrder) return true;
    if (partials > 0) return partials > 1 || table.status[running.tail] !== PREFILLING;
    return running.count > this.maxNumBatchedTokens;
  }

  /**
   * Free blocks with which `budget` suffices to admit a waiting request, which gets at most `limit` tokens in its first
   * iteration, and `padding` slots behind its last token. `Infinity` where it does not suffice.
   */
  blocksToAdmit(slot: number, budget: number, limit: number, padding = 0): number {
    const spare = this.running.count > 0 ? this.spareBlocks : 0;
    if (this.admitsWhole) return this.pool.needed(slot, ALL_TOKENS, padding) + spare;
    return this.blocksToBegin(slot, budget, limit, padding) + spare;
  }

  /** The same where the tokens of the first iteration matter, without those that an admission leaves free. */
  private blocksToBegin(slot: number, budget: number, limit: number, padding: number): number {
    if (!this.settings.chunkedPrefill && !this.fitsBudget(slot, budget, limit))
      return Number.POSITIVE_INFINITY;
    // While prompts come first no decode ends: blocks that the last chunk lacks would never be free.
    const tokens = this.prefillsFirst ? ALL_TOKENS : Math.max(0, Math.min(budget, limit));
    const { pool } = this;
    const isTransferred = this.table.transferred[slot] === 1;
    const whole = this.settings.wholePromptFits || isTransferred;
    if (this.lookahead === 0 && !this.hasWindows)
      return pool.needed(slot, whole ? ALL_TOKENS : tokens, padding);
    const needed = pool.needed(slot, tokens, isTransferred ? 0 : padding + this.lookahead);
    return whole ? Math.max(needed, pool.neededForWhole(slot)) : needed;
  }

  /** Whether a waiting request gets all of the tokens that it asks for. */
  private fitsBudget(slot: number, budget: number, limit: number): boolean {
    const { input, generatedOffset, transferred } = this.table;
    if (transferred[slot] === 1) return true;
    return Math.min(input[slot] + generatedOffset[slot] - this.pool.cachedTokens(slot), limit) <= budget;
  }

  /** When decodes have to be interrupted, while the head of the queue is blocked: `limit` or the next arrival. */
  nextInterruption(limit: number): number {
    // A front end takes up requests and tokens in the order in which they come up.
    if (this.future.count === 0 || (this.frontEnd === null && this.arrivalsWait)) return limit;
    return Math.min(limit, Math.max(this.now + 1, this.table.visible[this.future.head]));
  }

  /** Whether a request that arrives now waits, as those before it do. */
  private get arrivalsWait(): boolean {
    if (!this.admitting || this.running.count >= this.config.maxNumSeqs) return true;
    // Under fcfs a request that arrives behind a blocked head waits as the head does.
    if (this.waiting.count === 0 || this.config.schedulingPolicy !== 'fcfs' || this.order !== null)
      return false;
    return this.maxLoras === 0 || this.nextWaiting() >= 0;
  }

  /** The running request to preempt: the last admitted, or under `priority` the worst by class, then by age. */
  victim(): number {
    if (this.config.schedulingPolicy === 'fcfs') return this.running.tail;
    const { priority, order, next } = this.table;
    let worst = this.running.head;
    for (let slot = next[worst]; slot >= 0; slot = next[slot]) {
      const difference = priority[slot] - priority[worst];
      if (difference > 0 || (difference === 0 && order[slot] > order[worst])) worst = slot;
    }
    return worst;
  }

  /** Frees the KV of a running request and puts it at the front of its queue, unless it has ended. */
  preempt(slot: number): void {
    this.counters.preemptions++;
    if (this.table.status[slot] === ENDED) {
      this.forget(slot);
      return;
    }
    if (this.table.status[slot] === DECODING) this.table.lastToken[slot] = this.now;
    this.release(slot, true);
    this.table.transferred[slot] = 0;
    this.table.preemptions[slot]++;
    this.table.status[slot] = WAITING;
    this.waiting.readd(slot);
  }

  /** Records the last token of a running request at `now` and forgets the request. */
  complete(slot: number): void {
    const table = this.table;
    table.lastToken[slot] = this.now;
    if (this.aborted.count === 0 || !this.aborted.has(slot)) {
      this.completions.push(table, slot);
      this.counters.completed++;
    }
    if (this.asyncScheduling) this.leaveLater(slot);
    else this.forget(slot);
  }

  /** Lets go of the requests that ended before the iteration that is scheduled now. */
  releaseEnded(): void {
    const { ended, table } = this;
    for (let i = 0; i < ended.count; i++) {
      const slot = ended.slots[i];
      if (table.status[slot] !== ENDED) continue;
      // The tokens of the last iteration are known before its blocks are free.
      table.computed[slot] = table.input[slot] + table.generatedOffset[slot] - 1;
      this.forget(slot);
    }
    ended.count = 0;
  }

  /** Lets others find what a sequence that is verified ahead had filled before its last iteration. */
  fillSeen(slot: number): void {
    const { status, input, generatedOffset, computed, unseen } = this.table;
    if (!this.pool.caches || (status[slot] !== DECODING && status[slot] !== ENDED)) return;
    computed[slot] = Math.max(computed[slot], input[slot] + generatedOffset[slot] - unseen[slot] - 1);
    this.pool.fill(slot, computed[slot]);
  }

  /** Ends what only a schedule ahead holds back: what has ended is let go, and what was given up is forgotten. */
  settle(): void {
    this.releaseEnded();
    this.dropAborted();
  }

  /** Forgets the requests that were given up before the iteration that has ended now. */
  dropAborted(): void {
    const { aborted } = this;
    for (let i = 0; i < aborted.count; i++) {
      if (this.verifiesAhead) this.fillSeen(aborted.slots[i]);
      this.drop(aborted.slots[i]);
    }
    aborted.count = 0;
  }

  /** Lets the clock go to `tick` without an iteration: whatever is scheduled then knows all that has happened. */
  pauseUntil(tick: number): void {
    this.now = tick;
    this.lastStart = tick;
  }

  /** Whether an iteration has been scheduled that has not begun. */
  get isScheduledAhead(): boolean {
    return this.asyncScheduling && this.lastStart < this.now;
  }

  /** Whether the schedule ahead is empty, as what is left has ended or could not be seen when it was made. */
  get isEmptyAhead(): boolean {
    return this.running.count <= this.ended.count && this.isScheduledAhead && this.seesNothing();
  }

  private seesNothing(): boolean {
    const { ended, waiting, future, table } = this;
    for (let i = 0; i < ended.count; i++) if (this.isVerifiedBeyondEnd(ended.slots[i])) return false;
    if (!this.admitting) return true;
    return waiting.count === 0 && (future.count === 0 || table.visible[future.head] > this.lastStart);
  }

  /** Whether a request that has ended is in the iteration that is scheduled already: two of its tokens were not known then. */
  isVerifiedBeyondEnd(slot: number): boolean {
    const { status, unseen, generatedOffset, output } = this.table;
    if (!this.verifiesAhead || status[slot] !== ENDED) return false;
    return generatedOffset[slot] === output[slot] && unseen[slot] > 1;
  }

  /** Refuses a waiting request for good. One that was aborted, of which the schedule ahead knew nothing, is only forgotten. */
  reject(slot: number): void {
    const { aborted, table } = this;
    this.waiting.remove(slot);
    if (aborted.has(slot)) aborted.set(aborted.toArray().filter((other) => other !== slot));
    else {
      this.rejections.push(table.id[slot]);
      this.counters.rejected++;
    }
    table.free(slot);
  }

  /** Forgets a request wherever it is, and takes back what it holds. */
  drop(slot: number): void {
    const status = this.table.status[slot];
    if (status === FUTURE || status === ARRIVING) this.future.remove(slot);
    else if (status === WAITING) this.waiting.remove(slot);
    else this.release(slot, false);
    this.table.free(slot);
  }

  /** Forgets a running request without a trace in the logs. */
  private forget(slot: number): void {
    this.release(slot, false);
    this.table.free(slot);
  }

  /** Lets a running request that is done here go when the next iteration is scheduled. */
  private leaveLater(slot: number): void {
    const { table, decodes, verifications } = this;
    const isLost = this.aborted.count > 0 && this.aborted.has(slot);
    if (verifications.has(slot)) verifications.remove(slot);
    if (table.status[slot] === DECODING && decodes.active) {
      const context = decodes.remove(slot);
      table.computed[slot] = this.cachedOf(slot, context);
      table.blocks[slot] = this.blocksFor(context);
    }
    table.status[slot] = ENDED;
    if (!isLost) this.ended.push(slot);
  }

  /** Tokens of a sequence in lockstep that could be cached: of its context, those the scheduler knew when it last scheduled it. */
  private cachedOf(slot: number, context: number): number {
    return Math.max(this.table.computed[slot], context - this.unknownTokens);
  }

  /**
   * A prefill has ended at `now`: the request emits a token, its first or the one after a recomputation, and decodes
   * on, here or, from a `prefill` engine, elsewhere.
   */
  finishPrefill(slot: number): void {
    const table = this.table;
    if (table.firstToken[slot] === NOT_YET) {
      table.firstToken[slot] = this.now;
      if (this.frontEnd !== null) this.begun.push(slot);
      if (this.aborted.count === 0 || !this.aborted.has(slot)) this.firstTokens.push(table, slot);
    } else {
      this.interTokenLatency.add(this.now - table.lastToken[slot], 1);
    }
    this.counters.outputTokens++;
    const emitted = ++table.generatedOffset[slot];
    if (emitted >= table.output[slot]) {
      this.complete(slot);
    } else if (this.role === 'prefill') {
      this.handOver(slot);
    } else {
      table.status[slot] = DECODING;
      if (this.decodes.active) this.joinDecodes(slot);
      else if (this.verifications.active) this.verifications.add(slot);
    }
  }

  private handOver(slot: number): void {
    this.table.lastToken[slot] = this.now;
    this.handovers.push(this.progressOf(slot));
    if (this.asyncScheduling) this.leaveLater(slot);
    else this.forget(slot);
  }

  activateDecodes(): void {
    this.decodes.activate(this.running.head);
    this.settleDecodes();
  }

  /** Looks at the windows of all decodes in lockstep anew. */
  settleDecodes(): void {
    this.settling.count = 0;
    if (!this.hasWindows || !this.decodes.active) return;
    const { status, next } = this.table;
    for (let slot = this.running.head; slot >= 0; slot = next[slot]) {
      if (status[slot] === DECODING) this.settling.push(slot);
    }
  }

  joinDecodes(slot: number): void {
    this.decodes.add(slot);
    if (this.hasWindows) this.settling.push(slot);
  }

  /** State with which another engine continues a request that is not decoding here. */
  progressOf(slot: number): RequestProgress {
    const table = this.table;
    return {
      id: table.id[slot],
      arrival: table.arrival[slot],
      visible: table.visible[slot],
      input: table.input[slot],
      output: table.output[slot],
      priority: table.priority[slot],
      adapter: table.adapter[slot],
      emitted: table.generatedOffset[slot],
      scheduled: table.scheduled[slot],
      firstToken: table.firstToken[slot],
      lastToken: table.lastToken[slot],
      prefix: this.pool.prefixOf(slot),
      ...(this.order !== null && { view: this.views[slot] }),
    };
  }

  /** Gives a request a slot, and puts it among those that the scheduler has not seen yet. */
  enqueue(request: EngineRequest, visible: number): number {
    const { id, arrival, input, output, priority = 0, adapter = 0, prefix = null } = request;
    const { table } = this;
    const slot = table.allocate();
    table.id[slot] = id;
    table.arrival[slot] = arrival;
    table.visible[slot] = visible;
    table.scheduled[slot] = NOT_YET;
    table.firstToken[slot] = NOT_YET;
    table.order[slot] = NOT_YET;
    table.input[slot] = input;
    table.output[slot] = output;
    table.generatedOffset[slot] = 0;
    table.preemptions[slot] = 0;
    table.verifySteps[slot] = 0;
    table.priority[slot] = priority;
    table.adapter[slot] = adapter;
    table.transferred[slot] = 0;
    table.status[slot] = FUTURE;
    if (this.order !== null) {
      this.views[slot] = request.view ?? new RequestView(request, request.arrival / TICKS_PER_S);
    }
    this.pool.setPrefix(slot, prefix);
    this.insertFuture(slot);
    return slot;
  }

  /** Lets the requests that are visible by `tick` wait for admission. */
  receive(tick: number): void {
    const { future, table } = this;
    if (this.sinceReceived > 0 && this.running.count > 0) return;
    for (let slot = future.head; slot >= 0 && table.visible[slot] <= tick; slot = future.head) {
      future.remove(slot);
      table.status[slot] = WAITING;
      table.order[slot] = this.received++;
      this.waiting.add(slot);
    }
  }

  /** Puts a request among the future ones, in order of visibility. */
  insertFuture(slot: number): void {
    const { future } = this;
    const { visible, prev } = this.table;
    let before = future.tail;
    while (before >= 0 && visible[before] > visible[slot]) before = prev[before];
    future.insertAfter(before, slot);
  }

  /** The same for a request that another engine has begun. `transferred`: with its KV. */
  enqueueProgress(request: RequestProgress, visible: number, transferred: 0 | 1): void {
    const { table } = this;
    const slot = this.enqueue(request, visible);
    table.scheduled[slot] = request.scheduled;
    table.firstToken[slot] = request.firstToken;
    table.lastToken[slot] = request.lastToken;
    table.generatedOffset[slot] = request.emitted;
    table.transferred[slot] = transferred;
  }

  /** Takes a request out of the running list and its blocks back. `returns`: it will be admitted again. */
  private release(slot: number, returns: boolean): void {
    const { verifications, decodes } = this;
    const { status, blocks, computed } = this.table;
    this.running.remove(slot);
    if (status[slot] === DECODING && decodes.active) {
      const context = decodes.remove(slot);
      this.pool.release(slot, this.blocksFor(context), this.cachedOf(slot, context), returns);
      return;
    }
    if (status[slot] === PREFILLING) this.partials--;
    else if (status[slot] === DECODING && verifications.has(slot)) verifications.remove(slot);
    this.pool.release(slot, blocks[slot], computed[slot], returns);
  }
}
