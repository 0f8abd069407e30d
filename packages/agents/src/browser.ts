// The parts that run in a browser.
export { createFleetPolicy } from './policies/fleet-policies.ts';
export { createServePolicy } from './policies/serve-policies.ts';
