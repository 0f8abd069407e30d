// The parts that run in a browser.
export { type Deployment, resolveLaunch } from './deployment/deployment.ts';
export { readLaunch } from './deployment/launch.ts';
export { engineUsd, vllmDefaults } from './tune/candidate.ts';
export { serveTraffic } from './tune/load-point.ts';
export { profileError } from './tune/profile-error.ts';
