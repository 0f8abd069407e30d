import { AcceptanceSampler } from '../src/engine/acceptance-sampler.ts';
import {
  type BatchDepth,
  type Drafter,
  type EngineConfig,
  type HostKv,
  MAX_SPECULATION_DEPTH,
} from '../src/engine/engine-config.ts';
import type { RequestProgress } from '../src/engine/engine-log.ts';
import { FrontEnd, type FrontEndOptions } from '../src/engine/front-end.ts';
import { DraftTimer, IterationTimer } from '../src/engine/iteration-timer.ts';
import { LatencyHistogram } from '../src/engine/latency-histogram.ts';
import type { PromptPrefix } from '../src/engine/prefix-cache.ts';
import { RequestOverhead } from '../src/engine/request-overhead.ts';
import { NOT_YET, TICKS_PER_NS } from '../src/engine/ticks.ts';
import { ReferenceBlockPool } from './reference-block-pool.ts';

interface ReferenceRequest {
  id: number;
  arrival: number;
  visible: number;
  /** The front end has not taken it up. */
  arriving: boolean;
  input: number;
  output: number;
  priority: number;
  adapter: number;
  order: number;
  emitted: number;
  /** Tokens whose KV is computed. */
  computed: number;
  scheduled: number;
  firstToken: number;
  lastToken: number;
  transferred: boolean;
  /** Its prompt, or what a preemption lost, is being computed. */
  prefilling: boolean;
  /** Its last token has come, or its client has given it up, while the next iteration was scheduled already. */
  ended: boolean;
  aborted: boolean;
  /** The last iteration left it out. */
  skipped: boolean;
  prefix: PromptPrefix | null;
  table: { key: string | null; holders: number }[];
  filled: number;
  foreign: boolean;
  verifySteps: number;
  /** Tokens that the last iteration emitted, and its slots beyond them. */
  unseen: number;
  rejected: number;
  /** Drafts that were made for it. */
  drafts: number;
}

/**
 * vLLM V1's scheduler written down plainly: arrays of objects, one iteration after another, every block counted where
 * it is allocated. It skips nothing and remembers nothing, which makes it slow and easy to check against vLLM's
 * `Scheduler.schedule`. The fast engine has to agree with it to the last tick.
 */
export class ReferenceEngine {
  now = 0;
  running: ReferenceRequest[] = [];
  waiting: ReferenceRequest[] = [];
  future: ReferenceRequest[] = [];
  firstTokens: { id: number; firstToken: number }[] = [];
  completions: { id: number; firstToken: number; lastToken: number }[] = [];
  rejected: number[] = [];
  handovers: RequestProgress[] = [];
  preemptions = 0;
  outputTokens = 0;
  prefillTokens = 0;
  draftTokens = 0;
  acceptedTokens = 0;
  iterations = 0;
  busyTicks = 0;
  interTokenLatency = new LatencyHistogram();
  config: EngineConfig;
  pool: ReferenceBlockPool;
  cachedTokens = 0;
  loadedTokens = 0;
  private readonly loadNsPerToken: number;
  private received = 0;
  private readonly overhead: RequestOverhead;
  private readonly frontEnd: FrontEnd | null;
  /** Requests whose first token came in this iteration, and those that it completed. */
  private begun: ReferenceRequest[] = [];
  private completed: ReferenceRequest[] = [];
  private readonly seed: number;
  private readonly blockTokens: number;
  private readonly budget: number;
  private readonly role: string;
  private readonly watermark: number;
  private readonly wholePromptFits: boolean;
  private readonly chunkedPrefill: boolean;
  private readonly longPrefillTokenThreshold: number;
  private readonly longPrefillTokenThresholdAdaptive: boolean;
  private readonly asyncScheduling: boolean;
  private readonly drafter: Drafter;
  private readonly batchDepths: readonly BatchDepth[];
  private readonly maxLoras: number;
  private lastStart = 0;

  constructor(
    config: EngineConfig,
    options: {
      blockTokens: number;
      maxNumBatchedTokens: number;
      seed: number;
      role: 'mixed' | 'prefill';
      prefixCaching: boolean;
      asyncScheduling?: boolean;
      requestOverheadMs: number;
      requestOverheadJitter: number;
      requestOverheadPerTokenUs?: number;
      frontEnd?: FrontEndOptions;
      watermark?: number;
      wholePromptFits?: boolean;
      chunkedPrefill?: boolean;
      longPrefillTokenThreshold?: number;
      longPrefillTokenThresholdAdaptive?: boolean;
      drafter?: Drafter;
      speculationDepthPerBatchSize?: readonly BatchDepth[];
      hostKv?: HostKv;
      maxLoras?: number;
    },
  ) {
    this.config = config;
    this.blockTokens = options.blockTokens;
    const { hostKv = { blocks: 0, loadNsPerToken: 0 }, prefixCaching } = options;
    this.pool = new ReferenceBlockPool(config.kvBlocks, options.blockTokens, prefixCaching, hostKv.blocks);
    this.loadNsPerToken = hostKv.loadNsPerToken;
    this.budget = options.maxNumBatchedTokens;
    this.seed = options.seed;
    this.role = options.role;
    this.watermark = options.watermark ?? 0;
    this.wholePromptFits = options.wholePromptFits ?? true;
    this.chunkedPrefill = options.chunkedPrefill ?? true;
    this.longPrefillTokenThreshold = options.longPrefillTokenThreshold ?? 0;
    this.longPrefillTokenThresholdAdaptive = options.longPrefillTokenThresholdAdaptive ?? false;
    this.asyncScheduling = options.asyncScheduling ?? false;
    this.maxLoras = options.maxLoras ?? 0;
    this.drafter = options.drafter ?? 'ngram';
    this.batchDepths = options.speculationDepthPerBatchSize ?? [];
    this.overhead = new RequestOverhead({ requestOverheadPerTokenUs: 0, ...options });
    this.frontEnd = options.frontEnd === undefined ? null : new FrontEnd(options.frontEnd, options.seed);
    this.pool.recomputesLastBlock = this.lookahead > 0;
  }

  private get lookahead(): number {
    return this.drafter === 'eagle' ? this.config.speculationDepth : 0;
  }

  private get verifiesAhead(): boolean {
    return this.asyncScheduling && this.lookahead > 0;
  }

  private get draftsByBatchSize(): boolean {
    return this.config.speculationDepth > 0 && this.batchDepths.length > 0;
  }

  /** Whether the iteration after the one that ended it has it still: two of its tokens were not known. */
  private isVerifiedBeyondEnd({ ended, emitted, output, unseen }: ReferenceRequest): boolean {
    return this.verifiesAhead && ended && emitted === output && unseen > 1;
  }

  submit(request: {
    id: number;
    arrival: number;
    input: number;
    output: number;
    priority: number;
    adapter?: number;
    prefix: PromptPrefix | null;
  }): void {
    this.addFuture({
      adapter: 0,
      ...request,
      visible:
        request.arrival + (this.frontEnd === null ? this.overhead.ticks(request.id, request.input) : 0),
      arriving: this.frontEnd !== null,
      order: NOT_YET,
      emitted: 0,
      computed: 0,
      scheduled: NOT_YET,
      firstToken: NOT_YET,
      lastToken: NOT_YET,
      transferred: false,
      prefilling: false,
      ended: false,
      aborted: false,
      skipped: false,
      table: [],
      filled: 0,
      foreign: false,
      verifySteps: 0,
      unseen: 0,
      rejected: 0,
      drafts: 0,
    });
  }

  submitTransferred(request: RequestProgress, ready: number): void {
    this.addFuture({
      adapter: 0,
      ...request,
      visible: ready,
      arriving: false,
      order: NOT_YET,
      computed: 0,
      transferred: true,
      prefilling: false,
      ended: false,
      aborted: false,
      skipped: false,
      table: [],
      filled: 0,
      foreign: false,
      verifySteps: 0,
      unseen: 0,
      rejected: 0,
      drafts: 0,
    });
  }

  private addFuture(request: ReferenceRequest): void {
    this.future.push(request);
    this.future.sort((a, b) => a.visible - b.visible);
  }

  configure(config: EngineConfig): void {
    this.releaseEnded();
    this.dropAborted();
    const isSpeculative = config.speculationDepth > 0;
    const togglesSpeculation = this.config.speculationDepth > 0 !== isSpeculative;
    for (const request of togglesSpeculation ? this.running : []) {
      request.unseen = 0;
      request.rejected = 0;
      request.drafts = MAX_SPECULATION_DEPTH;
      if (isSpeculative) continue;
      this.pool.fill(request, request.computed);
      this.pool.shorten(request, this.blocksFor(request.computed));
    }
    if (config.schedulingPolicy !== this.config.schedulingPolicy)
      this.waiting.sort((a, b) => a.order - b.order);
    const grown = config.kvBlocks - this.config.kvBlocks;
    this.config = config;
    this.pool.recomputesLastBlock = this.lookahead > 0;
    while (this.pool.free < -grown) this.preempt(this.victim());
    if (grown < 0) this.pool.take(-grown);
    else this.pool.giveEmpty(grown);
  }

  restart(ticks: number): void {
    this.releaseEnded();
    this.dropAborted();
    while (this.running.length > 0) this.preempt(this.running[this.running.length - 1]);
    for (const request of [...this.waiting, ...this.future]) request.transferred = false;
    this.pool.clear();
    this.pauseUntil(this.now + ticks);
  }

  runUntil(limit: number): void {
    while (this.now < limit) {
      this.receiveArrivals();
      if (this.running.length === 0 && this.waiting.length === 0) {
        if (this.future.length === 0 || this.future[0].visible >= limit) {
          if (limit < Number.POSITIVE_INFINITY) this.pauseUntil(limit);
          break;
        }
        this.pauseUntil(Math.max(this.now, this.future[0].visible));
        continue;
      }
      this.iterate();
      this.dropAborted();
      this.releaseUnseen();
    }
    this.receiveArrivals(limit);
  }

  private receiveArrivals(limit = Number.POSITIVE_INFINITY): void {
    this.takeUpArrivals();
    let scheduledAt = this.asyncScheduling ? this.lastStart : this.now;
    if (this.frontEnd !== null) scheduledAt = Math.min(scheduledAt, limit);
    while (this.future.length > 0 && this.future[0].visible <= scheduledAt) {
      const request = this.future.shift() as ReferenceRequest;
      request.order = this.received++;
      this.waiting.push(request);
    }
  }

  /** Lets the front end take up what has arrived. */
  private takeUpArrivals(): void {
    for (const request of [...this.future]) {
      const { id, arrival, input } = request;
      if (this.frontEnd === null || !request.arriving || arrival > this.now) continue;
      const begin = this.frontEnd.takeUp(id, arrival, input);
      const work = this.frontEnd.requestTicks(input);
      this.future.splice(this.future.indexOf(request), 1);
      this.addFuture({
        ...request,
        visible: begin + Math.max(work, this.overhead.ticks(id, input)),
        arriving: false,
      });
    }
  }

  /** Streams the tokens of the iteration that has ended: clients have them later. */
  private stream(tokens: number): void {
    const { frontEnd, begun, completed, handovers, now: end, lastStart } = this;
    if (frontEnd === null) return;
    frontEnd.stream({ count: 1, tokens, start: lastStart, end, lastStart });
    for (const request of begun) {
      request.firstToken = frontEnd.deliveredTo(request.id);
      for (const list of [this.firstTokens, handovers]) {
        const at = list.findIndex(({ id }) => id === request.id);
        if (at >= 0) list[at] = { ...list[at], firstToken: request.firstToken } as never;
      }
    }
    for (const { id, firstToken } of completed) {
      const completion = this.completions.find((other) => other.id === id);
      if (completion === undefined) continue;
      completion.firstToken = firstToken;
      completion.lastToken = Math.max(firstToken, frontEnd.deliveredTo(id));
    }
  }

  private iterate(): void {
    const { config } = this;
    const scheduled = new Map<ReferenceRequest, number>();
    let budget = this.budget;
    let preempted = false;
    let most = Number.POSITIVE_INFINITY;
    const requests = this.running.length + this.waiting.length;
    if (this.longPrefillTokenThreshold > 0 && requests > 1) {
      const share = this.longPrefillTokenThresholdAdaptive ? Math.floor(budget / requests) : 0;
      most = Math.max(this.longPrefillTokenThreshold, share);
    }

    // What the last iteration but one told can be found, and what the last one did cannot yet.
    for (const request of this.running) this.fillSeen(request);

    let index = 0;
    while (index < this.running.length && budget > 0) {
      const request = this.running[index];
      if (request.ended && !this.isVerifiedBeyondEnd(request)) {
        index++;
        continue;
      }
      const drafts = this.draftsByBatchSize ? request.drafts : config.speculationDepth;
      const wanted = this.decoding(request)
        ? 1 + Math.min(drafts, config.speculationDepth)
        : this.known(request) - request.computed;
      const tokens = Math.min(wanted, budget, most);
      const start = request.computed + (this.verifiesAhead && this.decoding(request) ? request.rejected : 0);
      const reach = start + tokens + this.lookahead;
      let gaveUp = false;
      const lacking = Math.max(0, this.blocksFor(reach) - request.table.length);
      while (lacking > this.pool.free) {
        const victim = this.victim();
        const position = this.running.indexOf(victim);
        preempted = true;
        budget += scheduled.get(victim) ?? 0;
        scheduled.delete(victim);
        this.preempt(victim);
        if (victim === request) {
          gaveUp = true;
          break;
        }
        if (position < index) index--;
      }
      if (gaveUp) break;
      this.allocate(request, tokens, reach);
      scheduled.set(request, tokens);
      budget -= tokens;
      index++;
    }

    let padded = 0;
    let loadedTokens = 0;
    const runningCount = scheduled.size;
    if (!preempted) {
      while (budget > 0 && this.waiting.length > 0 && this.running.length < config.maxNumSeqs) {
        const request = this.nextWaiting();
        if (request === undefined) break;
        const end = request.input + request.output - 1 + config.speculationDepth + this.lookahead;
        const isTooLong = !this.chunkedPrefill && request.input + request.output > this.budget;
        if (isTooLong || this.blocksFor(end) > config.kvBlocks) {
          this.waiting.splice(this.waiting.indexOf(request), 1);
          this.rejected.push(request.id);
          continue;
        }
        const spare = this.running.length > 0 ? Math.floor(this.watermark * (config.kvBlocks + 1)) : 0;
        const whole = this.wholePromptFits || request.transferred;
        const padding = this.paddingOf(request, scheduled, runningCount);
        if (padding >= budget) break;
        const wanted = Math.min(this.known(request) - this.pool.cachedTokens(request), most);
        if (!this.chunkedPrefill && !request.transferred && wanted > budget) break;
        const beyond = request.transferred ? 0 : padding + this.lookahead;
        const found = this.pool.admit(request, Math.min(budget, most), whole, spare, beyond);
        if (found === null) break;
        request.computed = found.cached + found.loaded;
        this.cachedTokens += found.cached;
        this.loadedTokens += found.loaded;
        loadedTokens += found.loaded;
        this.waiting.splice(this.waiting.indexOf(request), 1);
        if (request.scheduled === NOT_YET) request.scheduled = this.now;
        this.running.push(request);
        request.prefilling = !request.transferred;
        if (request.transferred) request.computed = this.known(request) - 1;
        const tokens = Math.min(this.known(request) - request.computed, budget, most);
        request.rejected = padding;
        this.allocate(request, tokens, request.computed + tokens + beyond);
        scheduled.set(request, tokens);
        padded += padding;
        budget -= tokens + padding;
      }
    }
    if (this.asyncScheduling && config.speculationDepth === 0) {
      const skipped = this.running.filter((request) => !scheduled.has(request) && this.decoding(request));
      for (const request of this.running) request.skipped = false;
      for (const request of skipped) {
        if (request.ended) continue;
        this.pool.fill(request, request.computed);
        request.skipped = true;
      }
    }
    const nextDrafts = this.draftsOf(scheduled.size);
    this.releaseEnded();
    if (scheduled.size === 0) {
      // The next schedule knows all that has happened.
      for (const request of this.running) request.unseen = request.rejected = 0;
      this.pauseUntil(this.now);
      return;
    }

    let verified = 0;
    let sequences = 0;
    let drafting = 0;
    let context = 0;
    let prefill = 0;
    let attention = 0;
    for (const [request, tokens] of scheduled) {
      if (this.decoding(request)) {
        sequences++;
        verified += tokens;
        if (tokens > 1) drafting++;
        context += request.computed + tokens;
      } else {
        prefill += tokens;
        attention += tokens * (request.computed + tokens / 2);
      }
    }
    const timer = new IterationTimer(config.law);
    let ticks =
      timer.fixedTicks(verified + prefill + padded, sequences, attention) +
      timer.contextTicks(sequences, prefill) * context +
      Math.round(loadedTokens * this.loadNsPerToken * TICKS_PER_NS);
    if (this.draftsByBatchSize && nextDrafts > 0) drafting = sequences;
    if (drafting > 0 && config.speculation !== null) {
      ticks += new DraftTimer(config.speculation).ticks(nextDrafts, drafting, context);
    }
    this.lastStart = this.now;
    this.now += ticks;
    this.iterations++;
    this.busyTicks += ticks;
    this.prefillTokens += prefill;
    this.draftTokens += padded;

    for (const request of this.running) {
      if (scheduled.has(request)) request.drafts = nextDrafts;
      else if (this.decoding(request)) request.unseen = request.rejected = 0;
    }
    this.begun = [];
    this.completed = [];
    const before = this.outputTokens;
    for (const [request, tokens] of scheduled) {
      if (request.ended) continue;
      if (this.decoding(request)) this.emitDecoded(request, tokens, ticks);
      else this.advancePrefill(request, tokens);
    }
    this.stream(this.outputTokens - before);
  }

  /** Lets others find what a sequence had filled before its last iteration. */
  private fillSeen(request: ReferenceRequest): void {
    if (!this.verifiesAhead || !this.decoding(request)) return;
    this.pool.fill(request, this.known(request) - request.unseen - 1);
  }

  /** Drafts that an iteration of so many requests makes for each. */
  private draftsOf(requests: number): number {
    const range = this.batchDepths.findLast(([first]) => first <= requests);
    return Math.min(range?.[2] ?? Number.POSITIVE_INFINITY, this.config.speculationDepth);
  }

  /** Slots that vLLM pads a waiting request with of which one token is left, when `running` requests are scheduled. */
  private paddingOf(
    request: ReferenceRequest,
    scheduled: Map<ReferenceRequest, number>,
    running: number,
  ): number {
    // vLLM would wait for ever.
    if (this.config.speculationDepth >= this.budget || this.draftsByBatchSize) return 0;
    const beside = [...scheduled.keys()].slice(0, running);
    if (request.transferred || beside.some((other) => !this.decoding(other))) return 0;
    const cached = this.pool.cachedTokens(request);
    if (this.known(request) - cached !== 1 || (running === 0 && cached === 0)) return 0;
    return this.config.speculationDepth;
  }

  private emitDecoded(request: ReferenceRequest, given: number, ticks: number): void {
    let accepted = 0;
    if (given > 1) {
      const sampler = new AcceptanceSampler(this.seed, this.config.survival);
      accepted = sampler.accepted(sampler.requestKey(request.id), request.verifySteps++, given - 1);
    }
    const tokens = Math.min(1 + accepted, request.output - request.emitted);
    request.unseen = tokens;
    request.rejected = given - tokens;
    this.draftTokens += given - 1;
    this.acceptedTokens += accepted;
    this.outputTokens += tokens;
    if (request.transferred) this.interTokenLatency.add(this.now - request.lastToken, 1);
    else this.interTokenLatency.add(ticks / tokens, tokens);
    request.transferred = false;
    request.emitted += tokens;
    request.computed += tokens;
    if (request.emitted === request.output) this.complete(request);
  }

  private advancePrefill(request: ReferenceRequest, tokens: number): void {
    request.computed += tokens;
    if (request.computed < this.known(request)) return;
    request.prefilling = false;
    request.unseen = 1;
    if (request.firstToken === NOT_YET) {
      request.firstToken = this.now;
      this.begun.push(request);
      if (!request.aborted) this.firstTokens.push({ id: request.id, firstToken: this.now });
    } else this.interTokenLatency.add(this.now - request.lastToken, 1);
    request.emitted++;
    this.outputTokens++;
    if (request.emitted === request.output) {
      this.complete(request);
    } else if (this.role === 'prefill') {
      this.end(request);
      const { id, arrival, visible, input, output, priority, adapter, emitted, firstToken, prefix } = request;
      this.handovers.push({
        id,
        arrival,
        visible,
        input,
        output,
        priority,
        adapter,
        emitted,
        scheduled: request.scheduled,
        firstToken,
        lastToken: this.now,
        prefix,
      });
    }
  }

  private complete(request: ReferenceRequest): void {
    this.end(request);
    if (request.aborted) return;
    this.completed.push(request);
    this.completions.push({ id: request.id, firstToken: request.firstToken, lastToken: this.now });
  }

  /** A request is done here: gone at once, or, when the next iteration is scheduled already, behind that. */
  private end(request: ReferenceRequest): void {
    if (this.asyncScheduling) request.ended = true;
    else this.leave(request);
  }

  private releaseEnded(): void {
    for (const request of this.running.filter(({ ended, aborted }) => ended && !aborted)) {
      this.pool.fill(request, request.computed);
      this.leave(request);
    }
  }

  /** Goes on at once when the iteration that is scheduled already is empty. */
  private releaseUnseen(): void {
    const isEmpty =
      this.waiting.length === 0 &&
      this.running.every((request) => request.ended && !this.isVerifiedBeyondEnd(request));
    if (!isEmpty || this.future.some(({ visible }) => visible <= this.lastStart)) return;
    this.releaseEnded();
    this.pauseUntil(this.now);
  }

  /** The next schedule knows all that has happened until `tick`. */
  private pauseUntil(tick: number): void {
    this.now = tick;
    this.lastStart = tick;
  }

  private dropAborted(): void {
    for (const request of [...this.running, ...this.waiting].filter(({ aborted }) => aborted)) {
      if (this.running.includes(request)) this.fillSeen(request);
      if (this.running.includes(request)) this.leave(request);
      else this.waiting.splice(this.waiting.indexOf(request), 1);
    }
  }

  /** Forgets a request that its client gave up. */
  abort(id: number): boolean {
    const request = [...this.running, ...this.waiting, ...this.future].find(
      (known) => known.id === id && !known.ended && !known.aborted,
    );
    if (request === undefined) return false;
    request.aborted = true;
    if (this.future.includes(request)) this.future.splice(this.future.indexOf(request), 1);
    else if (!this.asyncScheduling || this.lastStart === this.now) this.dropAborted();
    return true;
  }

  /** Gives `request` the blocks up to slot `reach`. What the `tokens` fill with known tokens can be found. */
  private allocate(request: ReferenceRequest, tokens: number, reach: number): void {
    this.pool.grow(request, Math.max(0, this.blocksFor(reach) - request.table.length));
    const isAhead = this.asyncScheduling && this.config.speculationDepth === 0;
    let unknown = isAhead && !request.skipped ? 1 : 0;
    if (this.verifiesAhead) unknown = request.unseen;
    if (!this.decoding(request)) unknown = 0;
    this.pool.fill(request, Math.min(request.computed + tokens, this.known(request) - unknown));
    if (request.prefilling) this.pool.store(request, request.computed + tokens);
  }

  private leave(request: ReferenceRequest): void {
    this.running.splice(this.running.indexOf(request), 1);
    this.pool.release(request);
  }

  private preempt(request: ReferenceRequest): void {
    this.preemptions++;
    if (request.ended) {
      this.leave(request);
      return;
    }
    if (this.decoding(request)) request.lastToken = this.now;
    this.leave(request);
    request.computed = 0;
    request.transferred = false;
    this.waiting.unshift(request);
  }

  private victim(): ReferenceRequest {
    if (this.config.schedulingPolicy === 'fcfs') return this.running[this.running.length - 1];
    return this.running.reduce((worst, r) =>
      r.priority > worst.priority || (r.priority === worst.priority && r.order > worst.order) ? r : worst,
    );
  }

  private nextWaiting(): ReferenceRequest | undefined {
    const byPriority = this.config.schedulingPolicy === 'priority';
    const live = this.running.filter((r) => !r.ended || this.isVerifiedBeyondEnd(r));
    const adapters = new Set(live.flatMap((r) => (r.adapter > 0 ? [r.adapter] : [])));
    // Under fcfs, one that was admitted past others stands before them when it is preempted.
    const inOrder = byPriority || this.maxLoras === 0;
    const isFull = this.maxLoras > 0 && adapters.size >= this.maxLoras;
    return this.waiting
      .filter(({ adapter }) => !isFull || adapter === 0 || adapters.has(adapter))
      .sort((a, b) => (byPriority ? a.priority - b.priority : 0) || (inOrder ? a.order - b.order : 0))[0];
  }

  /** Prompt and generated tokens: what must have KV before the next token, but for the last token itself. */
  private known(request: ReferenceRequest): number {
    return request.input + request.emitted;
  }

  private decoding(request: ReferenceRequest): boolean {
    return !request.prefilling;
  }

  private blocksFor(tokens: number): number {
    return Math.ceil(tokens / this.blockTokens);
  }
}
