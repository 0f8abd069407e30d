import type { Engine } from '../engine/engine.ts';
import type { EngineRequest } from '../engine/engine-log.ts';
import { TICKS_PER_S } from '../engine/ticks.ts';
import { ROUTERS, type RouterPolicy } from '../policy/built-in.ts';
import { Dispatcher } from '../policy/dispatcher.ts';
import type { PolicyRun } from '../policy/policy.ts';
import {
  candidates,
  type ReplicaRole,
  type ReplicaTraits,
  type RequestView,
  Target,
} from '../policy/views.ts';

/** Engines behind a dispatcher, which scrapes them when a request comes, or every so many ticks. */
export class Router {
  /** Whether a choice looks at the engines, which needs a view of the request. */
  readonly looks: boolean;
  /** Whether a policy says which requests are prefilled apart. */
  readonly asksWhere: boolean;
  private readonly dispatcher: Dispatcher;
  private readonly targets: readonly Target[];
  private readonly intervalTicks: number;
  private readonly measuresQueue: boolean;
  /** First tokens in the log of each engine when it was last scraped. */
  private readonly counted: Int32Array;
  private scrapedAt = Number.NEGATIVE_INFINITY;
  /** Tick at which the clock of the engines began. */
  private origin = 0;

  /**
   * @param standard decides what the policy does not
   * @param intervalTicks between two scrapes; 0 scrapes at each request
   */
  constructor(
    engines: readonly Engine[],
    run: PolicyRun,
    standard: RouterPolicy,
    {
      role,
      traits,
      seed,
      intervalTicks,
    }: {
      readonly role: ReplicaRole;
      readonly traits: readonly ReplicaTraits[];
      readonly seed: number;
      readonly intervalTicks: number;
    },
  ) {
    this.dispatcher = new Dispatcher(run, ROUTERS[standard](), seed);
    this.targets = engines.map((engine, i) => new Target(engine, role, traits[i], this.dispatcher));
    this.dispatcher.candidates = candidates(this.targets);
    this.measuresQueue = run.functions.admit !== undefined;
    this.asksWhere = run.functions.disaggregate !== undefined;
    this.looks = this.dispatcher.looks && (engines.length > 1 || this.measuresQueue || this.asksWhere);
    this.intervalTicks = intervalTicks;
    this.counted = new Int32Array(engines.length);
  }

  /** Whether a request that comes at `tick` is taken. */
  admits(view: RequestView, tick: number): boolean {
    if (!this.measuresQueue) return true;
    this.look(tick);
    return this.dispatcher.admits(view);
  }

  /** Whether a request that comes at `tick` is prefilled elsewhere, and these engines decode it. */
  disaggregates(view: RequestView, tick: number): boolean {
    this.look(tick);
    return this.dispatcher.disaggregates(view);
  }

  /** The engine for a request that comes at `tick`. @param view where the router looks */
  choose(request: Pick<EngineRequest, 'input' | 'prefix'>, tick: number, view: RequestView | null): Engine {
    const { dispatcher } = this;
    if (view === null || !this.looks) return dispatcher.nextInTurns().engine;
    this.look(tick);
    const target = dispatcher.choose(view, request);
    dispatcher.sent(target, request);
    return target.engine;
  }

  /** Tick of the scrape whose metrics are seen at `tick`. */
  scrapeBefore(tick: number): number {
    const { intervalTicks: interval, origin } = this;
    return interval === 0 ? tick : Math.floor((tick + origin) / interval) * interval - origin;
  }

  /** Moves the origin of the clock, as `Engine.shiftClock`. */
  shiftClock(ticks: number): void {
    this.origin += ticks;
    this.scrapedAt -= ticks;
  }

  /** Runs the engines to the time of the last scrape before `tick`, and scrapes them, where that is to be done. */
  private look(tick: number): void {
    const { dispatcher, targets, intervalTicks: interval, origin } = this;
    dispatcher.seconds = (tick + origin) / TICKS_PER_S;
    const at = this.scrapeBefore(tick);
    if (interval > 0 && at <= this.scrapedAt) return;
    const seconds = (at + origin) / TICKS_PER_S;
    for (const target of targets) {
      target.engine.runUntil(at);
      target.scrape(seconds, interval === 0);
    }
    if (this.measuresQueue) this.measureQueue((at - this.scrapedAt) / TICKS_PER_S);
    this.scrapedAt = at;
  }

  private measureQueue(seconds: number): void {
    let starts = 0;
    let waiting = 0;
    for (const [i, { engine, waiting: queued }] of this.targets.entries()) {
      const { count } = engine.firstTokens;
      // The log was cleared since where it is shorter.
      starts += count < this.counted[i] ? count : count - this.counted[i];
      this.counted[i] = count;
      waiting += queued;
    }
    this.dispatcher.measure(starts, Number.isFinite(seconds) ? seconds : 0);
    this.dispatcher.measureQueue(waiting);
  }
}
