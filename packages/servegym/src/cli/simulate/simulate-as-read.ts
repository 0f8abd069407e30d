import {
  type EngineProfile,
  scaleRate,
  type Trace,
  TraceSimulation,
  takeRequests,
} from '@servegym/simulator';
import { readingLine, readTraceArgument } from '../arguments/trace-arguments.ts';
import { replicaOptions, type SimulateOptions } from './simulate-options.ts';
import { requestsBeyond } from './simulate-whole.ts';
import type { Simulation } from './simulation-report.ts';

/** Serves the requests of a file as they are read: what is in memory are the latencies, not the trace. */
export async function simulateAsRead(profile: EngineProfile, options: SimulateOptions): Promise<Simulation> {
  const { trace: file, weights, rateScale, limit = Number.POSITIVE_INFINITY } = options;
  const simulation = new TraceSimulation(replicaOptions(profile, options));
  let read = 0;
  let served = 0;
  let beyondValidity = 0;
  let wallMs = 0;
  const serve = (requests: Trace) => {
    read += requests.arrivalMs.length;
    const left = limit - served;
    if (left === 0) return;
    const taken = scaleRate(
      left < requests.arrivalMs.length ? takeRequests(requests, left) : requests,
      rateScale,
    );
    served += taken.arrivalMs.length;
    beyondValidity += requestsBeyond(profile, taken);
    const start = performance.now();
    simulation.take(taken);
    wallMs += performance.now() - start;
  };
  const { trace: rest, reading } = await readTraceArgument(file!, options, serve);
  serve(rest);
  if (!options.json) console.error(readingLine(file!, reading, read));
  const start = performance.now();
  const summary = simulation.finish();
  wallMs += performance.now() - start;
  return {
    ...{ profile, weights, source: rest.source, summary, beyondValidity },
    ...{ wallS: wallMs / 1000, isClosedBatch: false },
  };
}
