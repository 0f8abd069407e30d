export {
  calibrateServer,
  type ServerCalibration,
  type ServerCalibrationOptions,
} from './calibrate-server.ts';
export { compareLoad, type LoadComparison } from './compare-load.ts';
export { confirmingLoads, traceProbe } from './open-load.ts';
export type { Probe, ProbeRequest } from './probe.ts';
export { ServerClient, type ServerClientOptions, type ToldFacts } from './server-client.ts';
export type { ServerFacts } from './start-profile.ts';
