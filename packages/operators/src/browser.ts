// The parts that run in a browser.
export { type Deployment, longestRequest, resolveLaunch, traceWithin } from './deployment/deployment.ts';
export { readLaunch } from './deployment/launch.ts';
export { planFleet } from './plan/plan-fleet.ts';
export type { FleetPlan } from './plan/plan-result.ts';
export { engineUsd, vllmDefaults } from './search/candidate.ts';
export { runJob as evaluate } from './search/evaluator.ts';
export { serveTraffic } from './search/load-point.ts';
export { profileError } from './search/profile-error.ts';
export { parseSlo } from './search/slo.ts';
export { splitTrace } from './search/traffic.ts';
export { parsePieces, readParquetTrace } from './traces/trace-pieces.ts';
