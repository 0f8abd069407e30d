import { Cluster, type ClusterOptions } from '../cluster/cluster.ts';
import type { ServingConfig } from '../cluster/serving-config.ts';
import { msFromTicks, TICKS_PER_S, ticksFromMs } from '../engine/ticks.ts';
import { SimulatorError } from '../simulator-error.ts';
import type { Trace } from '../traces/trace.ts';
import { ClosedLoop } from './closed-loop.ts';
import { engineTotals } from './engine-totals.ts';
import { poolBlocks } from './pool-blocks.ts';
import { PromptChains } from './prompt-chains.ts';
import { RunCollector } from './run-collector.ts';
import type { SimulatedEvent, SimulatedSpan, SimulationRun } from './simulation-run.ts';
import { tracedRequest } from './traced-request.ts';

/** Requests submitted at a time: enough to amortise the call, few enough to stay in cache. */
const CHUNK = 1024;
/** The clock's origin moves when it is past this, well before doubles lose whole ticks (39 hours). */
const SHIFT_AT = 10 * 3600 * TICKS_PER_S;

/** Changes while a cluster serves. */
export interface ServingChange {
  /** After the first arrival, ms. */
  readonly atMs: number;
  /** Settings that are others from then on. */
  readonly config?: Partial<ServingConfig>;
  /** Memory that co-located tenants take on each GPU from then on, GiB. */
  readonly tenantGiB?: number;
}

/** Two GPUs, their settings, and what changes on the way. */
export interface ClusterSimulationOptions extends Omit<ClusterOptions, 'onIterations'> {
  /** The settings at the start. */
  readonly config: ServingConfig;
  /** Later changes, in any order; changes of one time in theirs. Default none. */
  readonly changes?: readonly ServingChange[];
  /** Priority class of each request, 0 (most urgent) .. 7. Default all 0. */
  readonly priorities?: Uint8Array;
  /** That of `SimulationOptions`. */
  readonly concurrency?: number;
  /** Told of every stretch of iterations of each GPU. */
  readonly onIterations?: (span: SimulatedSpan) => void;
}

/**
 * Serves a whole trace on two GPUs, mixed or split into prefill and decode, while settings and tenants change: what a
 * reload, a drain or an out-of-memory restart costs is in the latencies, and in `events`.
 * @throws SimulatorError, SimulatorError or SimulatorError when the options do not fit the profile.
 */
export function simulateCluster(trace: Trace, options: ClusterSimulationOptions): SimulationRun {
  const { config, changes = [], onIterations, priorities, concurrency, ...clusterOptions } = options;
  const { profile } = options;
  for (const { atMs, tenantGiB } of changes) {
    if (!(atMs >= 0))
      throw new SimulatorError(
        'SIMULATION_OPTION',
        `Expected the time of a change to be 0 ms or more, got \`${atMs}\``,
      );
    if (tenantGiB !== undefined && !(tenantGiB >= 0 && tenantGiB <= profile.gpu.memoryGiB)) {
      throw new SimulatorError(
        'SIMULATION_OPTION',
        `Expected a tenant to take 0 to ${profile.gpu.memoryGiB} GiB, what a GPU of \`${profile.name}\` has, got \`${tenantGiB}\``,
      );
    }
  }
  const kvBlocks = poolBlocks(profile, config.weights, config.speculationDepth, config.kvBudgetFraction);
  let origin = 0;
  const cluster = new Cluster(config, {
    ...clusterOptions,
    ...(onIterations && {
      onIterations: (replica, { start, end, ...span }) =>
        onIterations({
          ...span,
          replica,
          startMs: msFromTicks(start + origin),
          durationMs: msFromTicks(end - start),
        }),
    }),
  });
  const requests = trace.arrivalMs.length;
  const isClosed = trace.followUps !== undefined || concurrency !== undefined;
  const loop = isClosed ? new ClosedLoop(trace, concurrency) : null;
  const { prefixBlocks } = trace;
  const chains = options.prefixCaching === true && prefixBlocks ? PromptChains.of(prefixBlocks) : null;
  const collector = new RunCollector(requests, isClosed);
  const events: SimulatedEvent[] = [];
  const collect = () => {
    for (const engine of cluster.engines) {
      loop?.hear(engine, origin);
      collector.take(engine, origin);
    }
    for (const { kind, at, gpu } of cluster.events) {
      events.push({ kind, atMs: msFromTicks(at + origin), replica: gpu });
    }
    cluster.events.length = 0;
    const shift = Math.min(...cluster.engines.map((engine) => engine.now));
    if (shift < SHIFT_AT) return;
    cluster.shiftClock(shift);
    origin += shift;
  };

  let next = 0;
  /** Iteration by iteration, as an answer of one GPU may lead to a request at the other. */
  const serveClosedLoop = (ms: number, arrivals: ClosedLoop) => {
    for (;;) {
      const limit = (ms === Number.POSITIVE_INFINITY ? ms : ticksFromMs(ms)) - origin;
      const begin = cluster.nextIteration;
      const arrival = arrivals.nextArrival - origin;
      if (Math.min(begin, arrival) >= limit) return;
      if (arrival <= begin) {
        const at = arrivals.take();
        cluster.submit(tracedRequest(trace, at, at, origin, priorities, chains, arrival));
      } else {
        cluster.runUntil(begin + 1);
        collect();
      }
    }
  };
  const serveUntil = (ms: number) => {
    if (loop !== null) serveClosedLoop(ms, loop);
    while (loop === null && next < requests && trace.arrivalMs[next] < ms) {
      const chunkEnd = next + CHUNK;
      while (next < requests && next < chunkEnd && trace.arrivalMs[next] < ms) {
        cluster.submit(tracedRequest(trace, next, next, origin, priorities, chains));
        next++;
      }
      cluster.runUntil(ticksFromMs(trace.arrivalMs[next - 1]) - origin);
      collect();
    }
    cluster.runUntil(ms === Number.POSITIVE_INFINITY ? ms : ticksFromMs(ms) - origin);
    collect();
  };
  for (const { atMs, config: changed, tenantGiB } of changes.toSorted((a, b) => a.atMs - b.atMs)) {
    serveUntil(atMs);
    const next = { ...cluster.servingConfig, ...changed };
    poolBlocks(profile, next.weights, next.speculationDepth, next.kvBudgetFraction);
    cluster.configure(next, tenantGiB);
    collect();
  }
  serveUntil(Number.POSITIVE_INFINITY);
  return {
    ...engineTotals(cluster.engines),
    ...collector.run(),
    requests,
    kvBlocks,
    events: events.sort((a, b) => a.atMs - b.atMs),
  };
}
