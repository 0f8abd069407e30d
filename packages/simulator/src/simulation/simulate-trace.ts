import type { Trace } from '../traces/trace.ts';
import { RunCollector } from './run-collector.ts';
import type { SimulationOptions } from './simulation-options.ts';
import type { SimulationRun } from './simulation-run.ts';
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
