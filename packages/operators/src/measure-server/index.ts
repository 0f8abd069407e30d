export { calibrateServer, type ServerCalibration } from './calibrate-server.ts';
export { allTokens, compareLoad, confirmingLoads, type LoadComparison, traceProbe } from './probe.ts';
export { ServerClient, type ToldFacts } from './server-client.ts';
export type { ServerFacts } from './start-profile.ts';
