export { type RunningServer, type StartOptions, startServer } from './server/start-server.ts';
