import {
  type Cluster,
  type Engine,
  type EngineRequest,
  msFromTicks,
  TICKS_PER_MS,
  TICKS_PER_S,
} from '@servegym/simulator';
import type { Alarm, SimulatedClock } from './clock.ts';

/** The ticks' origin moves when the clock is past this, well before doubles lose whole ticks (39 hours). */
const SHIFT_AT = 10 * 3600 * TICKS_PER_S;
/** Events within a microsecond count as due: wall time in ms cannot tell all ticks apart. */
const DUE_SLACK = TICKS_PER_MS / 1000;
/** The event loop turns at least this often while the simulation catches up, ms. */
const LONGEST_TURN_MS = 8;
const MOST_IDS = 2 ** 31;

/** A request as the engines see it. */
export interface LiveRequest {
  readonly promptTokens: number;
  readonly outputTokens: number;
  /** Most output tokens that it asked for. */
  readonly maxTokens: number;
  /** Sequences that the request asked for together, this one included. */
  readonly choices: number;
  /** Why it ends after `outputTokens`. */
  readonly finishReason: 'stop' | 'length';
  /** 0 (most urgent) .. 7. */
  readonly priority: number;
  /** Its LoRA adapter, see `EngineRequest`. */
  readonly adapter?: number;
  /** Blocks that its prompt shares with others. */
  readonly prefix: EngineRequest['prefix'];
  /** Wall time at which it came in, ms. */
  readonly arrivedMs: number;
}

/** Hears of a request's progress when it is due. */
export interface LiveListener {
  /** It has emitted so many tokens in all; `isLast` when it has emitted them all. */
  onTokens(emitted: number, isLast: boolean): void;
  /** It can never fit the KV pool. */
  onRefused(): void;
}

/** Latencies of a finished request, simulated ms. */
export interface FinishedRequest {
  readonly request: LiveRequest;
  readonly queueMs: number;
  readonly ttftMs: number;
  /** `NaN` for a request of one token. */
  readonly tpotMs: number;
  readonly e2eMs: number;
  readonly preemptions: number;
}

/** Watches the server, for metrics. Times in simulated ms. */
export interface LiveObserver {
  onSubmitted(request: LiveRequest): void;
  onIteration(counters: Engine['counters'], engine: number): void;
  onFirstToken(ttftMs: number, engine: number): void;
  /** `tokens` tokens came `gapMs` apart. */
  onInterToken(gapMs: number, tokens: number, engine: number): void;
  onFinished(finished: FinishedRequest, engine: number): void;
  onAborted(): void;
  /** Tokens were handed out this long after they were due, wall ms. */
  onLateness(wallMs: number): void;
}

interface Entry {
  readonly request: LiveRequest;
  readonly listener: LiveListener;
  readonly id: number;
  /** Tokens emitted by the iterations taken so far, some of which may not be due yet. */
  taken: number;
  lastToken: number;
  preemptions: number;
  /** Engine that it was last seen running on, and at which of its iterations. */
  engine: number;
  round: number;
}

interface Batch {
  due: number;
  readonly emissions: { readonly entry: Entry; readonly emitted: number; readonly isLast: boolean }[];
}

/**
 * Runs a simulated server in step with wall time. An iteration is computed when it begins, with the requests that are
 * there by then, and what it emits is handed out when it ends; a request that comes in between waits for the next one,
 * as it does at a real engine.
 */
export class LiveServer {
  readonly server: Cluster;
  readonly clock: SimulatedClock;
  readonly #alarm: Alarm;
  readonly #observer: LiveObserver;
  readonly #entries = new Map<number, Entry>();
  /** By `due`, earliest first. Without a front end it holds one batch an engine at most. */
  readonly #batches: Batch[] = [];
  /** Tick at which each engine serves again after its last reload. */
  readonly #reloadedAt: number[];
  /** Iterations taken of each engine. */
  readonly #rounds: number[];
  #nextId = 0;
  #lastArrival = 0;

  /** @param createAlarm makes the alarm that calls `turn` */
  constructor(
    server: Cluster,
    clock: SimulatedClock,
    createAlarm: (ring: () => void) => Alarm,
    observer: LiveObserver,
  ) {
    this.server = server;
    this.clock = clock;
    this.#observer = observer;
    this.#reloadedAt = server.engines.map(() => 0);
    this.#rounds = server.engines.map(() => 0);
    this.#alarm = createAlarm(() => this.turn());
  }

  /** Requests that are waiting, running, or have tokens that are not due yet. */
  get liveCount(): number {
    return this.#entries.size;
  }

  /**
   * Takes in a request. Answers how to give it up: its KV blocks are free at once and its listener hears no more.
   * @throws {SimulatorError} naming the field that is out of range
   */
  submit(request: LiveRequest, listener: LiveListener): () => void {
    this.#shiftClock();
    const id = this.#freeId();
    // Bodies of different sizes are read at different speeds; the engine wants its requests in order of arrival.
    const arrival = Math.max(this.#lastArrival, this.clock.tickAt(request.arrivedMs));
    const { promptTokens: input, outputTokens: output, priority, adapter, prefix } = request;
    this.server.submit({ id, arrival, input, output, priority, adapter, prefix });
    this.#lastArrival = arrival;
    const start = { taken: 0, lastToken: 0, preemptions: 0, engine: 0, round: 0 };
    this.#entries.set(id, { request, listener, id, ...start });
    this.#observer.onSubmitted(request);
    this.turn();
    return () => {
      if (!this.#entries.delete(id)) return;
      this.server.abort(id);
      this.#observer.onAborted();
      this.turn();
    };
  }

  /** Changes the settings from the next iteration on. @throws {SimulatorError}, and changes nothing. */
  configure(...[config]: Parameters<Cluster['configure']>): void {
    this.#catchUp();
    // The clock of an engine that idles stands where its last iteration ended.
    this.server.runUntil(this.clock.now());
    this.#take();
    this.server.configure(config);
    for (const { kind, gpu } of this.server.events) {
      if (kind === 'reload' || kind === 'oom') this.#reloadedAt[gpu] = this.server.engines[gpu].now;
    }
    this.#take();
    this.turn();
  }

  /** Whether an engine loads weights or restarts, and serves nothing. */
  isReloading(engine: number): boolean {
    return this.clock.now() < this.#reloadedAt[engine];
  }

  /** Brings the server up to now, and sets the alarm for what comes next. */
  turn(): void {
    const next = this.#catchUp();
    if (next === Number.POSITIVE_INFINITY) this.#alarm.clear();
    else this.#alarm.set(this.clock.wallMsAt(next));
  }

  close(): void {
    this.#alarm.clear();
  }

  /** Hands out what is due and takes the iterations that have begun. Answers the tick at which there is more to do. */
  #catchUp(): number {
    const { clock, server } = this;
    const startedMs = clock.wallMs();
    for (;;) {
      const wallMs = clock.wallMs();
      const now = clock.tickAt(wallMs) + DUE_SLACK;
      const due = this.#batches[0]?.due ?? Number.POSITIVE_INFINITY;
      const begin = server.nextIteration;
      const next = Math.min(due, begin);
      if (next > now || wallMs - startedMs > LONGEST_TURN_MS) return next;
      if (due <= begin) {
        this.#handOut(this.#batches.shift()!);
      } else {
        server.runUntil(begin + 1);
        this.#take();
      }
    }
  }

  #handOut(batch: Batch): void {
    if (batch.emissions.length > 0) {
      this.#observer.onLateness(this.clock.wallMs() - this.clock.wallMsAt(batch.due));
    }
    for (const { entry, emitted, isLast } of batch.emissions) {
      // It may have been given up since.
      if (this.#entries.get(entry.id) !== entry) continue;
      if (isLast) this.#entries.delete(entry.id);
      entry.listener.onTokens(emitted, isLast);
    }
  }

  /** Reads off the engines what has happened since the last time. */
  #take(): void {
    for (const [index, engine] of this.server.engines.entries()) {
      const batches: Batch[] = [];
      if (engine.counters.iterations + engine.counters.preemptions > 0)
        this.#takeEmissions(engine, index, batches);
      for (const id of engine.rejections) {
        const entry = this.#entries.get(id);
        if (entry === undefined) continue;
        this.#entries.delete(id);
        entry.listener.onRefused();
      }
      engine.clearLogs();
      for (const batch of batches) {
        const at = this.#batches.findIndex((other) => other.due > batch.due);
        this.#batches.splice(at < 0 ? this.#batches.length : at, 0, batch);
      }
    }
    this.server.events.length = 0;
  }

  /** Adds what clients get of an iteration, by the time at which they have it. */
  #takeEmissions(engine: Engine, index: number, batches: Batch[]): void {
    const { completions, firstTokens, counters } = engine;
    this.#observer.onIteration(counters, index);
    for (let i = 0; i < firstTokens.count; i++) {
      const ttftMs = msFromTicks(firstTokens.firstTokens[i] - firstTokens.arrivals[i]);
      this.#observer.onFirstToken(ttftMs, index);
    }
    const emit = (id: number, emitted: number, isLast: boolean) => {
      const entry = this.#entries.get(id);
      if (entry === undefined || emitted <= entry.taken) return;
      const tokens = emitted - entry.taken;
      const due = engine.deliveredTo(id);
      let batch = batches.find((other) => other.due === due);
      if (batch === undefined) {
        batch = { due, emissions: [] };
        batches.push(batch);
      }
      if (entry.taken > 0) {
        const gapMs = msFromTicks(due - entry.lastToken);
        this.#observer.onInterToken(gapMs / tokens, tokens, index);
      }
      entry.taken = emitted;
      entry.lastToken = due;
      batch.emissions.push({ entry, emitted, isLast });
    };
    const { ids, outputs, arrivals, scheduled, lastTokens } = completions;
    for (let i = 0; i < completions.count; i++) {
      const entry = this.#entries.get(ids[i]);
      if (entry !== undefined) {
        const first = completions.firstTokens[i];
        const finished = {
          ...{ request: entry.request, preemptions: entry.preemptions },
          queueMs: msFromTicks(scheduled[i] - arrivals[i]),
          ttftMs: msFromTicks(first - arrivals[i]),
          tpotMs: msFromTicks(lastTokens[i] - first) / (outputs[i] - 1),
          e2eMs: msFromTicks(lastTokens[i] - arrivals[i]),
        };
        this.#observer.onFinished(finished, index);
      }
      emit(ids[i], outputs[i], true);
    }
    // A first token whose request has gone on to the other engine appears in no other list.
    for (let i = 0; i < firstTokens.count; i++) emit(firstTokens.ids[i], 1, false);
    const round = ++this.#rounds[index];
    engine.forEachRunning((id, _arrival, _firstToken, _blocks, emitted) => {
      emit(id, emitted, false);
      const entry = this.#entries.get(id);
      if (entry === undefined) return;
      entry.engine = index;
      entry.round = round;
    });
    if (counters.preemptions > 0) this.#countPreempted(index, round);
  }

  /** Counts for each request that ran in the iteration before, and neither runs nor has ended, one preemption. */
  #countPreempted(engine: number, round: number): void {
    for (const entry of this.#entries.values()) {
      const hasEnded = entry.taken >= entry.request.outputTokens;
      if (entry.engine === engine && entry.round === round - 1 && !hasEnded) entry.preemptions++;
    }
  }

  #freeId(): number {
    while (this.#entries.has(this.#nextId)) this.#nextId = (this.#nextId + 1) % MOST_IDS;
    const id = this.#nextId;
    this.#nextId = (id + 1) % MOST_IDS;
    return id;
  }

  #shiftClock(): void {
    const now = this.clock.now();
    if (now < SHIFT_AT) return;
    this.clock.shift(now);
    this.server.shiftClock(now);
    for (const batch of this.#batches) batch.due -= now;
    for (const entry of this.#entries.values()) entry.lastToken -= now;
    for (const engine of this.#reloadedAt.keys()) this.#reloadedAt[engine] -= now;
    this.#lastArrival -= now;
  }
}
