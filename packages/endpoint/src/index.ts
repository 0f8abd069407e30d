export type { LateFinding } from './live/lateness-watch.ts';
export { type EndpointOptions, type RunningEndpoint, startEndpoint } from './start-endpoint.ts';
