export { type EndpointOptions, type RunningEndpoint, startEndpoint } from './start-endpoint.ts';
