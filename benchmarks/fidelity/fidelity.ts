import type { LoadLatencies } from '../../packages/profiles/src/fits/served-load.ts';
import type { OperatingPoint } from '../../packages/profiles/src/tables/operating-points.ts';

/** Errors in percent; signed where a single figure is compared, positive when the simulator says more. */
export interface Fidelity {
  readonly staticBatches: readonly StaticBatchFidelity[];
  readonly quantized: readonly QuantizedFidelity[];
  readonly replay: ReplayFidelity;
  readonly servedLoads: readonly ServedLoadFidelity[];
  readonly recordedLoads: readonly RecordedLoadFidelity[];
  readonly speculation: readonly SpeculationFidelity[];
}

export interface StaticBatchFidelity {
  readonly profile: string;
  readonly rows: number;
  readonly leftOutMean: number;
  readonly leftOutWorst: number;
  /** Batches that overflow the KV pool, which no fit has seen. */
  readonly overflowing: readonly number[];
}

export interface QuantizedFidelity {
  readonly profile: string;
  readonly weights: string;
  readonly rows: number;
  readonly leftOutMean: number;
  readonly leftOutWorst: number;
}

export interface ReplayFidelity {
  readonly requests: number;
  readonly ttftMean: number;
  readonly ttftP99: number;
  readonly tpotMean: number;
  readonly e2eMean: number;
  readonly e2eP99: number;
  readonly makespan: number;
  readonly preemptions: number;
}

export interface ServedLoadFidelity extends LoadLatencies {
  readonly run: string;
  readonly model: string;
  readonly gpus: string;
  readonly group: ServedLoadGroup;
  /** The same, under constants that have seen no load of this model on this GPU. */
  readonly leftOut: LoadLatencies;
}

export type ServedLoadGroup = 'dense on H100' | 'mixture on H100' | 'A100' | 'L40S';

/** Errors of the latencies of single requests, median, without their signs. */
export interface RecordedLoadFidelity {
  readonly name: string;
  readonly requests: number;
  readonly ttft: number;
  readonly e2e: number;
}

export interface SpeculationFidelity {
  readonly batch: number;
  readonly simulated: number;
  readonly measured: number | null;
}

/** A prediction of an operating point, or why there is none. */
export type PointAnswer = { readonly ttftMs: number; readonly tpotMs: number } | { readonly error: string };

export interface PointRow {
  readonly point: OperatingPoint;
  readonly ours: PointAnswer;
  /** Of another estimator; `null` where it was not asked. */
  readonly theirs: PointAnswer | null;
}

/** Mean errors of one side over some rows, without their signs; `null` where it answers none. */
export interface PointErrors {
  readonly failed: number;
  readonly ttft: number | null;
  readonly tpot: number | null;
  /** Medians of the errors with their signs. */
  readonly ttftMedian: number | null;
  readonly tpotMedian: number | null;
}

export interface PointGroup {
  readonly group: string;
  readonly rows: number;
  readonly ours: PointErrors;
  readonly theirs: PointErrors | null;
  /** Ours over the rows that both answer. */
  readonly oursBeside: PointErrors | null;
}

/** Error of the simulator against a measurement, %. */
export function errorPercent(simulated: number, measured: number): number {
  return 100 * (simulated / measured - 1);
}
