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
} from './bodies.ts';
export type { ToolListing } from './messages.ts';
export { ERROR_CODES, type ErrorCode, type ErrorData } from './messages.ts';
