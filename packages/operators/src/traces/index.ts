export { readTrace, TraceFileError, type TraceFileOptions } from './read-trace.ts';
