export { CapacityError, ConnectionError, ServerError, TimeoutError } from './client-errors.ts';
export { type ConnectOptions, connect, EnvironmentClient } from './connect.ts';
export { VectorClient, type VectorFloats, type VectorOptions, type VectorStep } from './vector-client.ts';
