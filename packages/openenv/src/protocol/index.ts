export type { EnvironmentEntry, GradeBody, MetadataBody, SchemaBody, TasksBody } from './bodies.ts';
export { ERROR_CODES } from './messages.ts';
