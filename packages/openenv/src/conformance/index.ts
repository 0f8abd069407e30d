export { type SchemaCheck, schemaCheck } from './schema-check.ts';
export type { ValidateOptions } from './subject.ts';
export { type ValidationReport, validateServer } from './validate-server.ts';
