/** Output of `vector-load.ts`. */
export interface VectorMeasurement {
  readonly format: 'json' | 'float32';
  readonly environments: number;
  readonly environment_steps_per_s: number;
  /** From sending a message to its reply, ms. */
  readonly p50_ms: number;
  readonly p99_ms: number;
}
