export type { ValidateOptions } from './subject.ts';
export { type SchemaCheck, schemaCheck } from './subject.ts';
export { type ValidationReport, validateServer } from './validate-server.ts';
