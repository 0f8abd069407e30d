export {
  adapterNotes,
  type Deployment,
  longestRequest,
  profilesOnGpu,
  type RefusedRequests,
  refusedText,
  requestsWithin,
  resolveLaunch,
  resolvePlan,
  traceWithin,
  withAdapters,
} from './deployment/deployment.ts';
export { type Launch, readLaunch } from './deployment/launch.ts';
export { blocksOf, compareDeployments, compareMeasured } from './diff/compare-deployments.ts';
export { ASSUMPTIONS, PLAN_SPACE, planFleet, rankPlans } from './plan/plan-fleet.ts';
export type { FleetPlan } from './plan/plan-result.ts';
export { diffResult } from './report/diff-report.ts';
export { planResult } from './report/plan-report.ts';
export { tuneResult } from './report/tune-report.ts';
export {
  type Candidate,
  candidateText,
  EXTRA_KNOBS,
  splitParts,
  TUNE_SPACE,
  vllmDefaults,
} from './search/candidate.ts';
export { EvaluationRecord } from './search/evaluation-record.ts';
export { TUNE_JOB_KINDS } from './search/evaluator.ts';
export {
  parseSearchSpace,
  profileSpace,
  type SearchSpace,
  searchSpaceSchema,
} from './search/search-space.ts';
export { parseSlo, type SloTerm, TuningError } from './search/slo.ts';
export { joinBlocks, type SplitTraffic, sliceTrace, splitTrace } from './search/traffic.ts';
export { tuneProfile } from './tune/tune.ts';
export type { TuneResult } from './tune/tune-result.ts';
