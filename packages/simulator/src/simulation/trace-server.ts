import { Engine } from '../engine/engine.ts';
import { expectInteger, type IterationSpan } from '../engine/engine-config.ts';
import { addCounters, type EngineRequest, zeroCounters } from '../engine/engine-log.ts';
import { LatencyHistogram } from '../engine/latency-histogram.ts';
import type { PromptPrefix } from '../engine/prefix-cache.ts';
import { msFromTicks, TICKS_PER_S, ticksFromMs } from '../engine/ticks.ts';
import type { RouterPolicy } from '../policy/built-in.ts';
import { PolicyRun, startPolicy } from '../policy/policy.ts';
import { type ReplicaRole, RequestView } from '../policy/views.ts';
import { acceptanceTable, engineOptionsOf } from '../profiles/engine-options.ts';
import { kvPoolBlocks, noKvPool, weightVariant } from '../profiles/kv-pool.ts';
import { SimulatorError, wrongSetting } from '../simulator-error.ts';
import type { Trace } from '../traces/trace.ts';
import { ClosedLoop } from './closed-loop.ts';
import { Handovers } from './handovers.ts';
import { PromptChains } from './prompt-chains.ts';
import { Router } from './router.ts';
import type { RunCollector } from './run-collector.ts';
import type { EngineSettings, SimulationOptions } from './simulation-options.ts';
import type { SimulationTotals } from './simulation-run.ts';

/** Requests handed to the engine at a time: enough to amortise the call, few enough for its table to stay in the first cache. */
const CHUNK = 128;
const MAX_REPLICAS = 1024;
/** The clock's origin moves when it is past this, well before doubles lose whole ticks (39 hours). */
const SHIFT_AT = 10 * 3600 * TICKS_PER_S;

/** Engines behind a router, which serve requests as they are submitted. */
export class TraceServer {
  private readonly engines: readonly Engine[];
  /** Engines that requests are sent to. */
  private readonly entry: readonly Engine[];
  private readonly handovers: Handovers | null;
  private readonly router: Router;
  private readonly policy: PolicyRun;
  private readonly options: SimulationOptions;
  private readonly collector: RunCollector;
  private origin = 0;
  private submitted = 0;
  private refused = 0;
  private aborted = 0;
  /** Requests in order of arrival, and the ticks from the first origin at which their clients give up. */
  private readonly patience: { readonly id: number; readonly until: number }[] = [];
  private impatient = 0;
  private readonly timeoutTicks: number;
  private latestMs = 0;

  /** @throws SimulatorError when the options do not fit the profile. */
  constructor(options: SimulationOptions, collector: RunCollector) {
    const { profile, split, secondPool, router = 'round_robin' } = options;
    if (split !== undefined && options.replicas !== undefined) {
      throw refused('Expected `replicas` or `split`, got both');
    }
    const { prefill, decode } = split ?? { prefill: options.replicas ?? 1, decode: 0 };
    expectReplicas(split === undefined ? 'replicas' : 'split.prefill', prefill);
    if (split !== undefined) expectReplicas('split.decode', decode);
    const beside = besideReplicas(options);
    if (router === 'priority' && prefill + beside === 1) {
      throw refused(
        'Expected at least 2 replicas for the `priority` router, which keeps one for the urgent class',
      );
    }
    const isSecond = (replica: number) => secondPool !== undefined && replica >= prefill;
    this.policy = new PolicyRun(options.policy === undefined ? {} : startPolicy(options.policy));
    this.engines = Array.from({ length: prefill + beside + decode }, (_, replica) =>
      this.newEngine(options, isSecond(replica) ? secondPool! : options, replica),
    );
    this.entry = this.engines.slice(0, prefill + beside);
    this.options = options;
    const routerOf = (engines: readonly Engine[], first: number, standard: RouterPolicy, role: ReplicaRole) =>
      new Router(engines, this.policy, standard, {
        ...{ role, seed: options.seed ?? 0, intervalTicks: ticksFromMs(options.metricsIntervalMs ?? 0) },
        traits: engines.map((_, i) => {
          const {
            weight = 1,
            profile: { gpu },
          } = isSecond(first + i) ? secondPool! : { profile };
          return {
            index: i,
            kind: isSecond(first + i) ? 1 : 0,
            weight: decode === 0 ? weight : 1,
            usdPerHour: gpu.count * gpu.usdPerHour,
          };
        }),
      });
    this.router = routerOf(this.entry, 0, router, decode === 0 ? 'both' : 'prefill');
    // Where the KV comes from is nothing that an engine that decodes has cached.
    const decoding = this.engines.slice(prefill);
    const decodeRouter = router === 'prefix_aware' || router === 'kv_aware' ? 'least_loaded' : router;
    this.handovers =
      decode === 0
        ? null
        : new Handovers(
            ...([this.entry, decoding, routerOf(decoding, prefill, decodeRouter, 'decode')] as const),
            (request) => this.viewOf(request),
            ...([profile, secondPool?.profile] as const),
          );
    this.collector = collector;
    const { clientTimeoutMs } = options;
    if (clientTimeoutMs !== undefined && !(clientTimeoutMs > 0)) {
      throw wrongSetting('SIMULATION_OPTION', 'clientTimeoutMs', 'a number above 0', clientTimeoutMs);
    }
    this.timeoutTicks = ticksFromMs(clientTimeoutMs ?? Number.POSITIVE_INFINITY);
  }

  private newEngine(options: SimulationOptions, own: EngineSettings, replica: number): Engine {
    const { split, onIterations, schedulingPolicy = 'fcfs', seed = 0, prefixCaching = true } = options;
    const { order } = this.policy.functions;
    const { profile, weights = 'FP16', speculationDepth: depth = 0, acceptance = 'sharegpt' } = own;
    return new Engine(
      {
        law: weightVariant(profile, weights).law,
        maxNumSeqs: own.maxNumSeqs ?? 256,
        kvBlocks: blocksOf(own),
        schedulingPolicy,
        speculationDepth: depth,
        speculation: profile.speculation,
        survival: depth > 0 ? acceptanceTable(profile, acceptance) : [],
      },
      {
        ...engineOptionsOf(profile, depth > 0),
        maxNumBatchedTokens: own.maxNumBatchedTokens ?? 2048,
        ...{ seed, prefixCaching },
        role: split !== undefined && replica < split.prefill ? 'prefill' : 'mixed',
        ...(order && {
          order: (queue, tick) => this.policy.ordered(order, queue, (tick + this.origin) / TICKS_PER_S),
        }),
        ...(onIterations && {
          onIterations: ({ start, end, ...span }: IterationSpan) =>
            onIterations({
              ...span,
              replica,
              startMs: msFromTicks(start + this.origin),
              durationMs: msFromTicks(end - start),
            }),
        }),
      },
    );
  }

  /**
   * Takes the next requests of a trace, whose times go on from those before. A trace whose arrivals depend on answers
   * has to come whole, and is served to its end.
   * @param isWhole Whether no other requests come.
   */
  submit(requests: Trace, isWhole: boolean): void {
    const first = this.submitted;
    const { prefixBlocks } = requests;
    const { prefixCaching = true, concurrency } = this.options;
    const chains = isWhole && prefixCaching && prefixBlocks ? PromptChains.of(prefixBlocks) : null;
    if (requests.followUps !== undefined || concurrency !== undefined) {
      if (first > 0) {
        throw refused('Expected a trace with conversations or a concurrency to come in one piece');
      }
      this.serveClosedLoop(requests, new ClosedLoop(requests, concurrency), chains);
      return;
    }
    for (let i = 0; i < requests.arrivalMs.length; i++) {
      if (this.submitted % CHUNK === 0 && this.submitted > 0) {
        this.runUntil(ticksFromMs(this.latestMs) - this.origin);
        this.shiftClock();
      }
      const request = this.tracedRequest(requests, i, first + i, chains);
      if (this.patience.length > 0) this.giveUpUntil(request.arrival);
      this.send(request, requests, i);
      this.latestMs = requests.arrivalMs[i];
      this.submitted++;
    }
  }

  /**
   * Request `at` of a trace as an engine takes it under the number `id`.
   * @param chains The trace's hashes, when all of them are known; else they are taken one by one.
   * @param arrival Tick; default the trace's arrival.
   */
  private tracedRequest(
    trace: Trace,
    at: number,
    id: number,
    chains: PromptChains | null,
    arrival = ticksFromMs(trace.arrivalMs[at]) - this.origin,
  ): EngineRequest {
    const { priorities } = this.options;
    const { inputTokens, outputTokens, adapters, prefixBlocks } = trace;
    return {
      id,
      arrival,
      input: inputTokens[at],
      output: outputTokens[at],
      priority: priorities === undefined ? 0 : priorities[id],
      adapter: adapters === undefined ? 0 : adapters.of[at],
      prefix: prefixBlocks === undefined ? null : promptPrefix(trace, prefixBlocks, at, chains),
    };
  }

  /** Sends request `at` of a trace to an engine. Answers false when it is refused. */
  private send(request: EngineRequest, trace: Trace, at: number): boolean {
    const { router } = this;
    const { arrival } = request;
    const isOrdered = this.policy.functions.order !== undefined;
    const view = router.looks || isOrdered ? this.viewOf(request, trace, at) : null;
    if (view !== null && !router.admits(view, arrival)) {
      this.refused++;
      return false;
    }
    const isApart = view === null || this.handovers === null || this.handovers.disaggregates(view, arrival);
    const chosen = isApart ? router : this.handovers!.router;
    chosen.choose(request, arrival, view).submit(isOrdered ? { ...request, view: view! } : request);
    if (this.timeoutTicks < Number.POSITIVE_INFINITY) {
      this.patience.push({ id: request.id, until: arrival + this.origin + this.timeoutTicks });
    }
    return true;
  }

  /** Tick at which the next client gives up, if its request is not complete; `Infinity` when none will. */
  private get nextGivingUp(): number {
    const { patience, impatient } = this;
    return impatient < patience.length ? patience[impatient].until - this.origin : Number.POSITIVE_INFINITY;
  }

  /** Lets the next client give up. Answers its request, or -1 when that is complete. */
  private giveUp(): number {
    const { id } = this.patience[this.impatient++];
    if (!this.engines.some((engine) => engine.abort(id)) && !this.handovers?.abort(id)) return -1;
    this.aborted++;
    return id;
  }

  private giveUpUntil(tick: number): void {
    for (let at = this.nextGivingUp; at <= tick && at < Number.POSITIVE_INFINITY; at = this.nextGivingUp) {
      this.runEngines(at);
      this.giveUp();
    }
  }

  /** A request as a policy sees it. @param trace where it is request `at`, for the hashes of its prompt */
  private viewOf(request: EngineRequest, trace?: Trace, at = 0): RequestView {
    const seconds = (request.arrival + this.origin) / TICKS_PER_S;
    const { policy, predictedOutputs, predictedOutputError: error = null } = this.options;
    if (request.view !== undefined) return request.view;
    if (policy === undefined) return new RequestView(request, seconds);
    const { input, priority, id } = request;
    const blocks = trace?.prefixBlocks;
    const prefix = blocks === undefined ? null : promptPrefix(trace!, blocks, at, null);
    const predicted = predictedOutputs === undefined ? null : { tokens: predictedOutputs[id], error };
    return new RequestView({ input, priority, prefix }, seconds, predicted);
  }

  /** Serves all that is left, and answers what the engines have counted. */
  finish(): Omit<SimulationTotals, 'simulatedMs'> {
    this.giveUpUntil(Number.POSITIVE_INFINITY);
    this.runUntil(Number.POSITIVE_INFINITY);
    const { submitted: requests } = this;
    const { faults } = this.policy;
    const counters = zeroCounters();
    const latency = new LatencyHistogram();
    for (const engine of this.engines) {
      addCounters(counters, engine.counters);
      latency.merge(engine.interTokenLatency);
    }
    const { completed, rejected } = counters;
    return {
      ...{ requests, completed, rejected, counters, kvBlocks: blocksOf(this.options) },
      ...{ itlP50Ms: latency.quantileMs(0.5), itlP99Ms: latency.quantileMs(0.99) },
      ...(this.options.clientTimeoutMs !== undefined && { aborted: this.aborted }),
      ...(this.options.policy !== undefined && { policy: { refused: this.refused, faults } }),
    };
  }

  /** Serves all requests, each of which is submitted when no iteration that it could see has begun. */
  private serveClosedLoop(requests: Trace, loop: ClosedLoop, chains: PromptChains | null): void {
    const { engines } = this;
    this.submitted = requests.arrivalMs.length;
    for (;;) {
      const arrival = loop.nextArrival - this.origin;
      let begin = this.handovers?.nextReady ?? Number.POSITIVE_INFINITY;
      for (const engine of engines) begin = Math.min(begin, engine.nextIteration);
      const givingUp = this.nextGivingUp;
      if (givingUp <= Math.min(arrival, begin) && givingUp < Number.POSITIVE_INFINITY) {
        const request = this.giveUp();
        if (request >= 0) loop.answer(request, givingUp + this.origin);
        continue;
      }
      if (arrival <= begin) {
        if (arrival === Number.POSITIVE_INFINITY) return;
        const at = loop.take();
        const request = this.tracedRequest(requests, at, at, chains, arrival);
        if (!this.send(request, requests, at)) loop.answer(at, arrival + this.origin);
        continue;
      }
      // An answer of one replica may lead to a request at another: one iteration at a time.
      if (engines.length === 1) engines[0].runUntil(Math.min(arrival, givingUp), 1);
      else this.runEngines(begin + 1);
      for (const engine of engines) {
        loop.hear(engine, this.origin);
        this.collector.take(engine, this.origin);
      }
      this.shiftClock();
    }
  }

  private shiftClock(): void {
    const { engines } = this;
    const shift = Math.min(...engines.map((engine) => engine.now));
    if (shift <= SHIFT_AT) return;
    for (const engine of engines) engine.shiftClock(shift);
    this.router.shiftClock(shift);
    this.handovers?.shiftClock(shift);
    this.origin += shift;
  }

  private runUntil(tick: number): void {
    this.runEngines(tick);
    for (const engine of this.engines) this.collector.take(engine, this.origin);
  }

  private runEngines(tick: number): void {
    for (const engine of this.entry) engine.runUntil(tick);
    this.handovers?.runUntil(tick);
  }
}

/** KV blocks of an engine's pool. @throws SimulatorError when the fraction is none, or leaves not one block */
function blocksOf({ profile, weights = 'FP16', speculationDepth = 0, ...pool }: EngineSettings): number {
  const { kvBudgetFraction: fraction = 1 } = pool;
  if (pool.kvBlocks !== undefined) return pool.kvBlocks;
  if (!(fraction > 0 && fraction <= 1)) {
    throw wrongSetting('SIMULATION_OPTION', 'kvBudgetFraction', 'a number above 0 and at most 1', fraction);
  }
  const blocks = kvPoolBlocks(profile, weights, speculationDepth > 0, fraction);
  if (blocks >= 1) return blocks;
  throw noKvPool(profile, weights);
}

/** Engines of the second kind beside the first. @throws SimulatorError where it cannot serve with the first */
function besideReplicas({ profile, split, secondPool }: SimulationOptions): number {
  if (secondPool === undefined) return 0;
  const { model } = secondPool.profile;
  if (model.name !== profile.model.name) {
    throw refused(`Expected \`secondPool\` to serve \`${profile.model.name}\`, got \`${model.name}\``);
  }
  if (split === undefined) {
    expectReplicas('secondPool.replicas', secondPool.replicas ?? 1);
    return secondPool.replicas ?? 1;
  }
  if ((model.kvCache ?? 'FP16') !== (profile.model.kvCache ?? 'FP16')) {
    throw refused('Expected the KV of engines that decode to have the format of those that prefill');
  }
  if (secondPool.replicas !== undefined) {
    throw refused('Expected `secondPool.replicas` or `split`, got both');
  }
  return 0;
}

function expectReplicas(name: string, count: number): void {
  expectInteger('SIMULATION_OPTION', name, count, 1, MAX_REPLICAS);
}

function refused(message: string): SimulatorError {
  return new SimulatorError('SIMULATION_OPTION', message);
}

/** The block hashes of request `at`: in the chunks of `chains`, or one by one. */
function promptPrefix(
  { inputTokens, outputTokens }: Trace,
  prefixBlocks: NonNullable<Trace['prefixBlocks']>,
  at: number,
  chains: PromptChains | null,
): PromptPrefix {
  if (chains !== null) return chains.prefixOf(at, inputTokens[at], outputTokens[at]);
  const { blockTokens: chunkTokens, ids, offsets, namesAnswers = false } = prefixBlocks;
  const named = (offsets[at + 1] - offsets[at]) * chunkTokens;
  return {
    ...{ chunkTokens, ids: ids.subarray(offsets[at], offsets[at + 1]) },
    ...(namesAnswers && { namedTokens: Math.min(named, inputTokens[at] + outputTokens[at]) }),
  };
}
