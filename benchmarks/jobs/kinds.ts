/** The jobs of the benchmark. */
export const KINDS = { simulation: new URL('simulation-job.ts', import.meta.url).href };

/** Every run is a version of its own, so that no result is there before it. */
export const VERSION = process.env.SCALING_VERSION ?? `benchmark-${Date.now()}`;
