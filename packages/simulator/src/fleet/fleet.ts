import type { Handover } from '../cluster/transfer-link.ts';
import type { QueueOrder } from '../engine/engine-config.ts';
import { addCounters, type EngineCounters, zeroCounters } from '../engine/engine-log.ts';
import { LatencyHistogram } from '../engine/latency-histogram.ts';
import { TICKS_PER_S, ticksFromMs } from '../engine/ticks.ts';
import { OrderedQueue } from '../ordered-queue.ts';
import { admissionByClass, leastLoaded, weighted } from '../policy/built-in.ts';
import { Dispatcher } from '../policy/dispatcher.ts';
import { type PolicyFault, type PolicyFunctions, PolicyRun, startPolicy } from '../policy/policy.ts';
import { type Candidates, candidates, RequestView } from '../policy/views.ts';
import { portableMath } from '../portable-math.ts';
import { randomUniform, streamKey } from '../random/counter-random.ts';
import { faultAt } from './faults.ts';
import {
  checkFleetSettings,
  type FleetListener,
  type FleetOptions,
  type FleetRequest,
  type FleetSettings,
  settledOptions,
} from './fleet-options.ts';
import { engineConfig, Replica, type ReplicaState } from './replica.ts';

function arrivesFirst(a: FleetRequest, b: FleetRequest): boolean {
  return a.arrival < b.arrival || (a.arrival === b.arrival && a.id < b.id);
}

/** Events of a replica. */
export interface FleetEvent {
  readonly kind: 'requested' | 'ready' | 'draining' | 'stopped' | 'failed' | 'reclaimed' | 'role_changed';
  /** Tick. */
  readonly at: number;
  /** `Replica.ordinal`. */
  readonly replica: number;
}

/** Seconds that replicas of a pool were billed for, by state. Multiply by the GPUs of a replica for GPU seconds. */
export type ReplicaSeconds = Record<ReplicaState, number>;

/**
 * Replicas of one model behind a gateway, with cold starts, drains, failures, admission, and prefill and decode roles.
 * Between two looks at the metrics every engine runs by itself, which makes a day of a fleet a matter of seconds.
 *
 * A replica is billed from the request for it until it stops. One that is no longer wanted finishes what it was sent; one
 * that has not become ready is given back at once. A role changes when what runs has finished.
 */
export class Fleet {
  /** Replicas that start, serve or drain, in order of their start. */
  readonly replicas: Replica[] = [];
  /** Events since `clearLogs`. */
  readonly events: FleetEvent[] = [];
  /** Tick up to which the fleet has served. */
  now = 0;
  /** In force; changed by `configure`. */
  settings: FleetSettings;
  private readonly options: ReturnType<typeof settledOptions>;
  private readonly intervalTicks: number;
  private readonly coldStartKey: number;
  private readonly failureKey: number;
  private readonly reclaimKey: number;
  private readonly listener: FleetListener;
  private readonly policy: PolicyRun;
  private readonly dispatcher: Dispatcher;
  private readonly order: QueueOrder | undefined;
  /** Replicas that new requests are sent to, and those that decode. */
  private front: Candidates = candidates([]);
  private decoders: Candidates = candidates([]);
  /** Whether settings, replicas or their states are others than when replicas were last asked for and chosen among. */
  private isChanged = true;
  /** Requests that wait for a replica to be ready, in order of arrival. */
  private held: FleetRequest[] = [];
  /** Requests that have not arrived yet. */
  private coming = new OrderedQueue(arrivesFirst);
  /** Prefilled requests that no replica can decode yet. */
  private stranded: Handover[] = [];
  private started = 0;
  private seconds: ReplicaSeconds[];
  /** Counters and latencies of replicas that have stopped since `clearLogs`. */
  private readonly retired = zeroCounters();
  private readonly retiredLatency = new LatencyHistogram();

  /**
   * The replicas of `settings` are ready at tick 0.
   * @throws SimulatorError when a setting or option is out of range.
   */
  constructor(settings: FleetSettings, options: FleetOptions, listener: FleetListener) {
    this.options = settledOptions(options);
    const { pools, maxReplicas, metricsIntervalMs, seed } = this.options;
    checkFleetSettings(settings, pools.length, maxReplicas);
    this.intervalTicks = ticksFromMs(metricsIntervalMs);
    this.coldStartKey = streamKey(seed, 'fleet-cold-start');
    this.failureKey = streamKey(seed, 'fleet-failure');
    this.reclaimKey = streamKey(seed, 'fleet-reclaim');
    this.listener = listener;
    this.settings = settings;
    this.policy = new PolicyRun(options.policy === undefined ? {} : startPolicy(options.policy));
    this.dispatcher = new Dispatcher(this.policy, this.standardOf(settings), seed, true);
    const { order } = this.policy.functions;
    this.order = order && ((queue, tick) => this.policy.ordered(order, queue, tick / TICKS_PER_S));
    this.seconds = pools.map(() => ({ starting: 0, ready: 0, draining: 0 }));
    this.scale();
    for (const replica of this.replicas) {
      replica.readyAt = 0;
      replica.state = 'ready';
    }
    this.assignRoles();
    for (const replica of this.replicas) replica.engine.setRole(replica.wants);
    this.events.length = 0;
  }

  /** Seconds of queue that admission goes by: requests that wait over first tokens a second, as of the last look. */
  get queueSeconds(): number {
    return this.dispatcher.queueSeconds;
  }
  /** Requests that wait for a replica at the gateway, as none is ready. */
  get heldCount(): number {
    return this.held.length;
  }
  /** Faults of the functions of a policy. */
  get policyFaults(): readonly PolicyFault[] {
    return this.policy.faults;
  }

  /** Seconds that the replicas of a pool were billed for since the fleet began, by state. */
  replicaSeconds(pool: number): ReplicaSeconds {
    return { ...this.seconds[pool] };
  }

  /** Counts of all engines since `clearLogs`. */
  counters(): EngineCounters {
    const sum = { ...this.retired };
    for (const { engine } of this.replicas) addCounters(sum, engine.counters);
    return sum;
  }

  /** Inter-token latencies of all engines since `clearLogs`. */
  interTokenLatency(): LatencyHistogram {
    const all = new LatencyHistogram();
    all.merge(this.retiredLatency);
    for (const { engine } of this.replicas) all.merge(engine.interTokenLatency);
    return all;
  }

  /** Adds a request. One that should have arrived before the present arrives now. */
  submit(request: FleetRequest): void {
    this.coming.add(request.arrival < this.now ? { ...request, arrival: this.now } : request);
  }

  /**
   * Changes settings. Budget, sequence cap, routing and admission hold at once; replicas start, drain and change roles.
   * @throws SimulatorError or SimulatorError, and changes nothing, when a setting is out of range.
   */
  configure(settings: FleetSettings): void {
    const { pools, maxReplicas } = this.options;
    checkFleetSettings(settings, pools.length, maxReplicas);
    this.settings = settings;
    this.isChanged = true;
    this.dispatcher.standard = this.standardOf(settings);
    for (const { engine, pool, slowdown } of this.replicas)
      engine.configure(engineConfig(pools[pool], settings, slowdown));
  }

  /** Serves until `limit` (ticks), one metrics interval after another. */
  runUntil(limit: number): void {
    while (this.now < limit) this.serve(Math.min(limit, this.now + this.intervalTicks));
  }

  /** Forgets events, counters and latencies. */
  clearLogs(): void {
    this.events.length = 0;
    for (const replica of this.replicas) {
      replica.engine.clearLogs();
      replica.target.routed = 0;
    }
    Object.assign(this.retired, zeroCounters());
    this.retiredLatency.clear();
  }

  /** The state, without the logs, to go back to. */
  snapshot() {
    const { now, settings, started } = this;
    return {
      ...{ now, settings, started },
      replicas: this.replicas.map((replica) => replica.snapshot()),
      dispatcher: this.dispatcher.snapshot(),
      held: this.held.slice(),
      coming: this.coming.list(),
      stranded: this.stranded.slice(),
      seconds: this.seconds.map((seconds) => ({ ...seconds })),
    };
  }

  /** Goes back to where `snapshot` was taken, with empty logs. */
  restore(snapshot: ReturnType<Fleet['snapshot']>): void {
    const { now, settings, started, dispatcher, held, coming, stranded, seconds } = snapshot;
    const present = new Map(this.replicas.map((replica) => [replica.ordinal, replica]));
    Object.assign(this, { now, settings, started });
    this.replicas.length = 0;
    for (const taken of snapshot.replicas) {
      const same = present.get(taken.ordinal);
      const replica =
        same?.slot === taken.slot && same.pool === taken.pool
          ? same
          : this.newReplica(taken.slot, taken.ordinal, taken.pool, taken.readyAt);
      replica.restore(taken);
      this.replicas.push(replica);
    }
    this.isChanged = true;
    this.dispatcher.restore(dispatcher);
    this.dispatcher.standard = this.standardOf(settings);
    this.held = held.slice();
    this.coming = new OrderedQueue(arrivesFirst, coming);
    this.stranded = stranded.slice();
    this.seconds = seconds.map((each) => ({ ...each }));
    this.clearLogs();
  }

  private serve(end: number): void {
    const { replicas, listener, coming } = this;
    const seconds = (end - this.now) / TICKS_PER_S;
    this.manage(seconds);
    this.look();
    this.flush();
    while (coming.size > 0 && coming.first.arrival < end) {
      const request = coming.take();
      if (!this.route(request)) listener.refused(request.id, request.arrival, 'admission');
    }
    for (const { engine, link } of replicas) {
      if (engine.role !== 'prefill') continue;
      engine.runUntil(end);
      this.stranded.push(...link.sendFrom(engine));
    }
    this.handOver();
    let starts = 0;
    for (const { engine } of replicas) {
      if (engine.role === 'mixed') engine.runUntil(end);
      starts += engine.firstTokens.count;
    }
    this.dispatcher.measure(starts, seconds);
    for (const replica of replicas) this.seconds[replica.pool][replica.state] += seconds;
    this.now = end;
    for (const replica of replicas) this.tell(replica);
  }

  /** Scrapes the replicas' metrics, and takes note of which may be sent requests. */
  private look(): void {
    const { replicas, dispatcher, held, now } = this;
    let waiting = held.length;
    for (const { target, ordinal } of replicas) {
      if (faultAt(this.options.faults, 'late_scrape', ordinal, now / TICKS_PER_S) === undefined)
        target.scrape(now / TICKS_PER_S);
      waiting += target.waiting;
    }
    dispatcher.measureQueue(waiting);
    dispatcher.held = held.length;
    if (!this.isChanged) return;
    this.isChanged = false;
    const routable = replicas.filter((replica) => replica.isRoutable);
    const prefilling = routable.filter(({ engine }) => engine.role === 'prefill');
    const decoding = routable.filter(({ engine }) => engine.role === 'mixed');
    for (const { target } of prefilling) target.role = 'prefill';
    for (const { target } of decoding) target.role = prefilling.length > 0 ? 'decode' : 'both';
    this.decoders = candidates(decoding.map(({ target }) => target));
    this.front = prefilling.length > 0 ? candidates(prefilling.map(({ target }) => target)) : this.decoders;
  }

  /** Sends what is held, when a replica is ready. What was accepted is not refused any more. */
  private flush(): void {
    if (this.front.targets.length === 0 || this.held.length === 0) return;
    const { held } = this;
    this.held = [];
    const standard = this.options.standard ?? weighted(BY_QUEUE);
    for (const each of held) {
      const request = { ...each, arrival: this.now };
      this.send(request, this.viewOf(request), standard);
    }
  }

  /** Sends a request to a replica, or holds it while none is ready. Answers false when it is refused. */
  private route(request: FleetRequest): boolean {
    const { dispatcher, front } = this;
    const view = this.viewOf(request);
    dispatcher.candidates = front;
    if (!dispatcher.admits(view)) return false;
    if (front.targets.length === 0) this.held.push(request);
    else this.send(request, view);
    return true;
  }

  private send(request: FleetRequest, view: RequestView, standard?: PolicyFunctions): void {
    const { dispatcher, front, decoders } = this;
    dispatcher.candidates = decoders;
    const isApart = front === decoders || decoders.targets.length === 0 || dispatcher.disaggregates(view);
    const target = dispatcher.choose(view, request, isApart ? front : decoders, standard);
    target.engine.submit(this.order === undefined ? request : { ...request, view });
    dispatcher.sent(target, request);
  }

  private viewOf(request: Omit<FleetRequest, 'id' | 'output'>): RequestView {
    const seconds = request.arrival / TICKS_PER_S;
    this.dispatcher.seconds = Math.max(seconds, this.now / TICKS_PER_S);
    return new RequestView(request, seconds, request.predicted);
  }

  private handOver(): void {
    const { stranded, dispatcher, decoders } = this;
    if (stranded.length === 0) return;
    const kept: Handover[] = [];
    for (const handover of stranded) {
      if (decoders.targets.length === 0) {
        kept.push(handover);
        continue;
      }
      const { request, ready } = handover;
      const target = dispatcher.choose(this.viewOf(request), request, decoders, leastLoaded);
      target.engine.submitTransferred(request, Math.max(ready, this.now));
      target.sent++;
    }
    this.stranded = kept;
  }

  private tell(replica: Replica): void {
    const { engine } = replica;
    const { firstTokens, completions, rejections } = engine;
    if (firstTokens.count > 0) this.listener.firstTokens(firstTokens, replica);
    if (completions.count > 0) this.listener.completions(completions, replica);
    for (const id of rejections) this.listener.refused(id, engine.now, 'never_fits');
    engine.clearAnswers();
  }

  /** Changes between two intervals: starts, stops, failures, and changes of roles. */
  private manage(seconds: number): void {
    const { replicas } = this;
    const { faults, failuresPerHour } = this.options;
    for (const replica of replicas) {
      const { state, ordinal } = replica;
      if (state === 'starting' && replica.readyAt <= this.now) {
        replica.state = 'ready';
        replica.engine.idleUntil(this.now);
        this.log('ready', replica);
      } else if (
        state !== 'starting' &&
        (replica.goneAt <= this.now || this.isHit(this.failureKey, failuresPerHour, ordinal, seconds))
      ) {
        this.fail(replica);
      }
      this.reclaim(replica, seconds);
      if (faults.length > 0) this.suffer(replica);
    }
    for (let at = replicas.length - 1; at >= 0; at--) {
      if (replicas[at].state === 'draining' && replicas[at].requests === 0) this.stop(at);
    }
    if (this.isChanged) this.scale();
    if (this.isChanged) this.assignRoles();
    for (const replica of replicas) {
      const { engine, wants } = replica;
      if (replica.state !== 'ready' || engine.role === wants || replica.requests > 0) continue;
      engine.setRole(wants);
      this.log('role_changed', replica);
    }
  }

  /** Whether an event of so many an hour comes to a replica in an interval of so many seconds. */
  private isHit(key: number, perHour: number, ordinal: number, seconds: number): boolean {
    if (perHour === 0) return false;
    const draw = randomUniform(key, ordinal, Math.round(this.now / this.intervalTicks));
    return draw < 1 - portableMath.exp((-perHour * seconds) / 3600);
  }

  /** Lets the provider take spot capacity back: the replica drains until the notice is over, and another one is asked for. */
  private reclaim(replica: Replica, seconds: number): void {
    const { reclaim } = this.options.pools[replica.pool];
    if (reclaim === undefined || replica.state !== 'ready') return;
    if (!this.isHit(this.reclaimKey, reclaim.perHour, replica.ordinal, seconds)) return;
    replica.state = 'draining';
    replica.goneAt = this.now + ticksFromMs(1000 * reclaim.noticeSeconds);
    this.log('reclaimed', replica);
  }

  private suffer(replica: Replica): void {
    const { now, intervalTicks } = this;
    const { faults, pools } = this.options;
    const { ordinal, pool, engine } = replica;
    const slowdown = faultAt(faults, 'slow', ordinal, now / TICKS_PER_S)?.factor ?? 1;
    if (slowdown !== replica.slowdown) {
      replica.slowdown = slowdown;
      engine.configure(engineConfig(pools[pool], this.settings, slowdown));
    }
    const before = faultAt(faults, 'lost', ordinal, (now - intervalTicks) / TICKS_PER_S);
    const isLost = faultAt(faults, 'lost', ordinal, now / TICKS_PER_S) !== undefined && before === undefined;
    if (isLost && replica.state !== 'starting') this.fail(replica);
  }

  /** Loses what a replica holds; its requests are sent anew, and it starts again unless it was to stop. */
  private fail(replica: Replica): void {
    this.log('failed', replica);
    replica.engine.restart(0);
    for (const { id, input, output, priority, adapter, prefix, view } of replica.engine.withdrawWaiting()) {
      const tokens = view?.predicted_output_tokens ?? null;
      const predicted = tokens === null ? undefined : { tokens, error: view!.predicted_output_error };
      this.held.push({ id, arrival: this.now, input, output, priority, adapter, prefix, predicted });
    }
    this.dispatcher.forget(replica.slot);
    if (replica.state === 'draining') return;
    replica.state = 'starting';
    replica.readyAt = this.now + this.coldStartTicks(replica.pool, replica.ordinal, this.now);
  }

  private scale(): void {
    const { replicas, settings } = this;
    for (const [pool, wanted] of settings.replicas.entries()) {
      const serving = replicas.filter((replica) => replica.pool === pool && replica.state !== 'draining');
      for (let surplus = serving.length - wanted; surplus > 0; surplus--) {
        const least = serving.reduce((a, b) => (leavesFirst(b, a) ? b : a));
        serving.splice(serving.indexOf(least), 1);
        if (least.state === 'starting') {
          this.stop(replicas.indexOf(least));
        } else {
          least.state = 'draining';
          this.log('draining', least);
        }
      }
      for (let missing = wanted - serving.length; missing > 0; missing--) {
        const slot = this.freeSlot();
        if (slot < 0) break;
        const ordinal = this.started++;
        const readyAt = this.now + this.coldStartTicks(pool, ordinal, 0);
        const replica = this.newReplica(slot, ordinal, pool, readyAt);
        replicas.push(replica);
        this.log('requested', replica);
      }
    }
  }

  private assignRoles(): void {
    const ready = this.replicas.filter(({ state }) => state === 'ready');
    const wanted = Math.max(0, Math.min(this.settings.prefillReplicas, ready.length - 1));
    let surplus = ready.filter(({ wants }) => wants === 'prefill').length - wanted;
    for (const replica of ready) {
      if (surplus === 0) return;
      if (surplus > 0 === (replica.wants === 'prefill')) {
        replica.wants = surplus > 0 ? 'mixed' : 'prefill';
        surplus -= Math.sign(surplus);
      }
    }
  }

  private stop(at: number): void {
    const [replica] = this.replicas.splice(at, 1);
    addCounters(this.retired, replica.engine.counters);
    this.retiredLatency.merge(replica.engine.interTokenLatency);
    this.dispatcher.forget(replica.slot);
    this.log('stopped', replica);
  }

  /** The functions that decide where the policy does not. */
  private standardOf({ routing, admissionSeconds }: FleetSettings): PolicyFunctions {
    return this.options.standard ?? { ...weighted(routing), ...admissionByClass(admissionSeconds) };
  }

  private newReplica(slot: number, ordinal: number, pool: number, readyAt: number): Replica {
    const { dispatcher, order, settings } = this;
    const { pools, seed } = this.options;
    return new Replica({ slot, ordinal, pool, readyAt }, pools[pool], settings, { seed, dispatcher, order });
  }

  /** A place for one more replica; -1 when all GPUs are in use. */
  private freeSlot(): number {
    for (let slot = 0; slot < this.options.maxReplicas; slot++) {
      if (!this.replicas.some((replica) => replica.slot === slot)) return slot;
    }
    return -1;
  }

  private coldStartTicks(pool: number, ordinal: number, draw: number): number {
    const [least, most] = this.options.pools[pool].coldStartSeconds;
    const seconds = least + (most - least) * randomUniform(this.coldStartKey, ordinal, draw / TICKS_PER_S);
    return ticksFromMs(seconds * 1000);
  }

  private log(kind: FleetEvent['kind'], replica: Replica): void {
    this.isChanged = true;
    this.events.push({ kind, at: this.now, replica: replica.ordinal });
  }
}

/** Weights for what was held while no replica was ready. */
const BY_QUEUE = { queue: 1, cache: 0, prefix: 0 };

/** Whether a scale-down takes `a` rather than `b`: what starts before what serves, then the least busy, then the youngest. */
function leavesFirst(a: Replica, b: Replica): boolean {
  if (a.state !== b.state) return a.state === 'starting';
  if (a.state === 'starting' && a.readyAt !== b.readyAt) return a.readyAt > b.readyAt;
  const difference = a.target.inFlight - b.target.inFlight;
  return difference < 0 || (difference === 0 && a.ordinal > b.ordinal);
}
