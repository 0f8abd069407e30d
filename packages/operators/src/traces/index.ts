export { readTrace, type TraceFileOptions } from './read-trace.ts';
export {
  findReferenceFiles,
  RECORDED_LOADS,
  REFERENCE_DATA,
  type ReferenceFile,
  SERVED_LOADS,
} from './reference-data.ts';
