export { ERROR_CODES, type ErrorCode, SESSION_ERROR_REASONS, type SessionErrorReason } from './error-code.ts';
export type {
  EnvironmentEntry,
  ErrorBody,
  GradeBody,
  HealthBody,
  MetadataBody,
  ObservationBody,
  SchemaBody,
  StateBody,
  TasksBody,
} from './http-body.ts';
export {
  JSON_RPC_ERROR_CODES,
  type JsonRpcError,
  type JsonRpcErrorCode,
  type JsonRpcId,
  type JsonRpcRequest,
  type JsonRpcResponse,
  type ToolCallResult,
  type ToolListing,
} from './json-rpc.ts';
export type { JsonSchema } from './json-schema.ts';
export type { ValidationIssue } from './validation-issue.ts';
export type {
  ClientMessage,
  ErrorData,
  ServerMessage,
  VectorClientMessage,
  VectorMessage,
} from './web-socket-message.ts';
