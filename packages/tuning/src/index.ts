export { KNOB_NAMES, type KnobName } from './tune/candidate.ts';
export type { Objective } from './tune/search.ts';
export { parseSlo, type SloTerm } from './tune/slo.ts';
export { joinBlocks, type SplitTraffic, sliceTrace, splitTrace, type Traffic } from './tune/traffic.ts';
export { tuneProfile } from './tune/tune.ts';
export { TUNE_JOB_KINDS } from './tune/tune-job-kinds.ts';
export type { TuneResult } from './tune/tune-result.ts';
export { TuningError, type TuningErrorCode } from './tuning-error.ts';
