export { baseUrl, socketUrl } from './base-url.ts';
export { type ConnectOptions, connect, EnvironmentClient } from './connect.ts';
export { CapacityError, ConnectionError, ServerError, TimeoutError } from './exchange.ts';
export { VectorClient, type VectorFloats, type VectorOptions, type VectorStep } from './vector-client.ts';
