export { CapacityError, ConnectionError, ServerError, TimeoutError } from './client-errors.ts';
export { type ConnectOptions, connect, EnvironmentClient } from './connect.ts';
