/** Output of `step-load.ts`. */
export interface StepMeasurement {
  readonly connections: number;
  readonly steps_per_s: number;
  /** From sending a step to its reply, ms. */
  readonly p50_ms: number;
  readonly p99_ms: number;
  /** To open all sessions and reset them, s. */
  readonly open_s: number;
  /** Share of a core that the load took. Near 1 it is the load that was measured. */
  readonly load_cpu: number;
}
