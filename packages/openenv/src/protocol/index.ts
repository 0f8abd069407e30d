export type { EnvironmentEntry, GradeBody, MetadataBody, SchemaBody, TasksBody } from './messages.ts';
export { ERROR_CODES } from './messages.ts';
export { readLimitedJson } from './read-json.ts';
