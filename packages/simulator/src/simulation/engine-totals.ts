import type { Engine } from '../engine/engine.ts';
import { type EngineCounters, zeroCounters } from '../engine/engine-log.ts';
import { LatencyHistogram } from '../engine/latency-histogram.ts';
import type { SimulationTotals } from './simulation-run.ts';

/** Counts of the engines that served a trace together. */
export function engineTotals(
  engines: readonly Engine[],
): Pick<SimulationTotals, 'completed' | 'rejected' | 'itlP50Ms' | 'itlP99Ms' | 'counters'> {
  const counters = sumOfCounters(engines);
  const interTokenLatency = new LatencyHistogram();
  for (const engine of engines) interTokenLatency.merge(engine.interTokenLatency);
  return {
    completed: counters.completed,
    rejected: counters.rejected,
    itlP50Ms: interTokenLatency.quantileMs(0.5),
    itlP99Ms: interTokenLatency.quantileMs(0.99),
    counters,
  };
}

function sumOfCounters(engines: readonly Engine[]): EngineCounters {
  const sum = zeroCounters();
  for (const engine of engines) {
    for (const name of Object.keys(sum) as (keyof EngineCounters)[]) sum[name] += engine.counters[name];
  }
  return sum;
}
