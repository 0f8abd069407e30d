import type { Engine } from '../engine/engine.ts';
import { ticksFromMs } from '../engine/ticks.ts';
import { OrderedQueue } from '../ordered-queue.ts';
import { SimulatorError, wrongSetting } from '../simulator-error.ts';
import type { Trace } from '../traces/trace.ts';

const NONE = -1;

/**
 * Arrivals of a trace that depend on answers: a follow-up arrives when the answer before it is complete and its think
 * time is over, and with a concurrency the next conversation starts when one has ended. A request that is refused
 * counts as answered, and so does one that its client gives up.
 */
export class ClosedLoop {
  /** First and next follow-up to the same answer, by request. */
  private readonly firstFollowUp: Int32Array;
  private readonly nextFollowUp: Int32Array;
  private readonly thinkMs: Float64Array | undefined;
  /** First request of each request's conversation, and requests of each conversation without an answer. */
  private readonly root: Int32Array;
  private readonly unanswered: Int32Array;
  /** First requests that have not started, in order of arrival. */
  private readonly starts: readonly number[];
  private started = 0;
  private readonly arrivalMs: Float64Array;
  private readonly isOpen: boolean;
  /** Tick of arrival of each request whose arrival is known. */
  private readonly dueTick: Float64Array;
  /** Requests that have not arrived, by tick of arrival, then by number. */
  private readonly due = new OrderedQueue<number>(
    (a, b) => this.dueTick[a] < this.dueTick[b] || (this.dueTick[a] === this.dueTick[b] && a < b),
  );
  /** Rejections of each engine that are taken account of. */
  private readonly refused = new Map<Engine, number>();

  /** @param concurrency Conversations in flight, instead of the trace's arrivals. @throws SimulatorError */
  constructor({ arrivalMs, followUps, source }: Trace, concurrency: number | undefined) {
    if (concurrency !== undefined && !(Number.isSafeInteger(concurrency) && concurrency >= 1)) {
      throw wrongSetting('SIMULATION_OPTION', 'concurrency', 'a whole number from 1', concurrency);
    }
    const count = arrivalMs.length;
    this.arrivalMs = arrivalMs;
    this.isOpen = concurrency === undefined;
    this.thinkMs = followUps?.thinkMs;
    this.firstFollowUp = new Int32Array(count).fill(NONE);
    this.nextFollowUp = new Int32Array(count).fill(NONE);
    this.root = new Int32Array(count);
    this.unanswered = new Int32Array(count);
    this.dueTick = new Float64Array(count);
    const starts: number[] = [];
    const previousOf = (i: number) => followUps?.previous[i] ?? NONE;
    for (let i = 0; i < count; i++) {
      const previous = previousOf(i);
      if (previous >= i) {
        const expected = `${source}: expected a follow-up to stand behind what it follows`;
        throw new SimulatorError('SIMULATION_OPTION', `${expected}, got request ${i} after ${previous}`);
      }
      this.root[i] = previous === NONE ? i : this.root[previous];
      this.unanswered[this.root[i]]++;
      if (previous === NONE) starts.push(i);
    }
    for (let i = count - 1; i >= 0; i--) {
      const previous = previousOf(i);
      if (previous === NONE) continue;
      this.nextFollowUp[i] = this.firstFollowUp[previous];
      this.firstFollowUp[previous] = i;
    }
    this.starts = starts;
    for (let i = Math.min(concurrency ?? 1, starts.length); i > 0; i--) this.startNext(0);
  }

  /** Tick of the next arrival that is known; `Infinity` when there is none. */
  get nextArrival(): number {
    return this.due.size === 0 ? Number.POSITIVE_INFINITY : this.dueTick[this.due.first];
  }

  /** Takes the number of the request that arrives next. */
  take(): number {
    const request = this.due.take();
    if (this.isOpen && this.root[request] === request) this.startNext(0);
    return request;
  }

  /** Takes account of what an engine has answered and refused since its completions were cleared. */
  hear(engine: Engine, origin: number): void {
    const { ids, lastTokens, count } = engine.completions;
    for (let i = 0; i < count; i++) this.answer(ids[i], lastTokens[i] + origin);
    const { rejections } = engine;
    const heard = this.refused.get(engine) ?? 0;
    if (rejections.length === heard) return;
    for (let i = heard; i < rejections.length; i++) this.answer(rejections[i], engine.now + origin);
    this.refused.set(engine, rejections.length);
  }

  /** Takes account of a request that is refused or answered at a tick. */
  answer(request: number, tick: number): void {
    for (let next = this.firstFollowUp[request]; next !== NONE; next = this.nextFollowUp[next]) {
      this.push(next, tick + ticksFromMs((this.thinkMs as Float64Array)[next]));
    }
    if (--this.unanswered[this.root[request]] === 0 && !this.isOpen) this.startNext(tick);
  }

  /** Starts the next conversation: at `tick` with a concurrency, else when the trace says. */
  private startNext(tick: number): void {
    if (this.started === this.starts.length) return;
    const request = this.starts[this.started++];
    this.push(request, this.isOpen ? ticksFromMs(this.arrivalMs[request]) : tick);
  }

  private push(request: number, tick: number): void {
    this.dueTick[request] = tick;
    this.due.add(request);
  }
}
