export {
  calibrateServer,
  type ServerCalibration,
} from './calibrate-server.ts';
export { compareLoad, type LoadComparison } from './compare-load.ts';
export { confirmingLoads, traceProbe } from './probe.ts';
export { ServerClient, type ToldFacts } from './server-client.ts';
export type { ServerFacts } from './start-profile.ts';
