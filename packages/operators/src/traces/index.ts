export { readTrace, type TraceFileOptions } from './read-trace.ts';
export { findReferenceFiles, REFERENCE_DATA, type ReferenceFile } from './reference-data.ts';
