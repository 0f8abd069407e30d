export { readClientJson } from '../sessions/off-loop.ts';
export type { EnvironmentEntry, GradeBody, MetadataBody, SchemaBody, TasksBody } from './messages.ts';
export { ERROR_CODES } from './messages.ts';
