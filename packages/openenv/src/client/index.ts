export { baseUrl, type ConnectOptions, connect, EnvironmentClient, socketUrl } from './connect.ts';
export { CapacityError, ConnectionError, ServerError, TimeoutError } from './exchange.ts';
export { VectorClient, type VectorFloats, type VectorOptions, type VectorStep } from './vector-client.ts';
