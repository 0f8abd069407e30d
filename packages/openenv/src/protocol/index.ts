export type {
  EnvironmentEntry,
  GradeBody,
  HealthBody,
  JsonSchema,
  MetadataBody,
  ObservationBody,
  SchemaBody,
  StateBody,
  TasksBody,
  ValidationIssue,
} from './http-body.ts';
export type { ToolListing } from './json-rpc.ts';
export { ERROR_CODES, type ErrorCode, type ErrorData } from './web-socket-message.ts';
