import { summarize } from '../statistics/summary.ts';
import type { Trace } from '../traces/trace.ts';
import { RunCollector } from './run-collector.ts';
import type { SimulationOptions } from './simulation-options.ts';
import type { SimulationRun, SimulationSummary } from './simulation-run.ts';
import { TraceServer } from './trace-server.ts';

/**
 * Serves a whole trace on one engine, or on several behind a router. `TraceSimulation` does the same with a trace that
 * comes in pieces.
 * @throws SimulatorError when the options do not fit the profile.
 */
export function simulateTrace(trace: Trace, options: SimulationOptions): SimulationRun {
  const isClosed = trace.followUps !== undefined || options.concurrency !== undefined;
  const collector = new RunCollector(trace.arrivalMs.length, isClosed ? 'requests and arrivals' : 'requests');
  const server = new TraceServer(options, collector);
  server.submit(trace, true);
  return { ...server.finish(), ...collector.run() };
}

const FIRST_CAPACITY = 2 ** 16;

/**
 * Serves a trace that comes in pieces, of which none is kept: what it needs is 24 bytes for each request that was
 * served. The answer is that of `simulateTrace`, without the single requests.
 */
export class TraceSimulation {
  private readonly collector = new RunCollector(FIRST_CAPACITY, 'latencies');
  private readonly server: TraceServer;
  /** The piece taken last, which may be the only one. */
  private held: Trace | null = null;
  private isFirst = true;

  /** @throws SimulatorError when the options do not fit the profile. */
  constructor(options: Omit<SimulationOptions, 'priorities'>) {
    this.server = new TraceServer(options, this.collector);
  }

  /** Takes the next requests, whose times go on from those before. */
  take(requests: Trace): void {
    if (this.held !== null) {
      this.server.submit(this.held, false);
      this.isFirst = false;
    }
    this.held = requests;
  }

  /** Serves what is left. To be asked once, after the last piece. */
  finish(): SimulationSummary {
    if (this.held !== null) this.server.submit(this.held, this.isFirst);
    return summarizeRun({ ...this.server.finish(), ...this.collector.run() });
  }
}

/** A run without its single requests. */
export function summarizeRun(run: SimulationRun): SimulationSummary {
  const { ids: _, queueMs: __, arrivalMs: ___, ttftMs, tpotMs, e2eMs, ...totals } = run;
  return {
    ...totals,
    ttft: summarize(ttftMs),
    tpot: summarize(tpotMs.filter((value) => !Number.isNaN(value))),
    e2e: summarize(e2eMs),
  };
}
