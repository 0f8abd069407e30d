// The parts that run in a browser.
export { type Deployment, resolveLaunch } from './deployment/deployment.ts';
export { readLaunch } from './deployment/launch.ts';
export { engineUsd, vllmDefaults } from './search/candidate.ts';
export { serveTraffic } from './search/load-point.ts';
export { profileError } from './search/profile-error.ts';
