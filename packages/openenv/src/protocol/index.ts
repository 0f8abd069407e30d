export { readClientJson } from '../sessions/client-json.ts';
export type { EnvironmentEntry, GradeBody, MetadataBody, SchemaBody, TasksBody } from './messages.ts';
export { ERROR_CODES } from './messages.ts';
