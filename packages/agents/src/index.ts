export { AGENT_JOB_KINDS } from './agent-job-kinds.ts';
export { QUICK, type TaskCheck, THOROUGH } from './core/checks/task-check.ts';
export {
  compareEvaluations,
  type PairedDifference,
  type Standings,
} from './core/compare-evaluations.ts';
export {
  agentsOf,
  EVALUATION_SPLITS,
  evaluate,
  evaluateScenarios,
  type FoundPolicy,
  findPolicy,
  isPolicyFile,
  scenariosOf,
  tasksToPlay,
} from './core/evaluate.ts';
export {
  type Estimate,
  type Evaluation,
  evaluatePolicy,
  type GainFigures,
  gainFigures,
  joinEvaluations,
  type ReturnAnchors,
  type TaskEvaluation,
} from './core/evaluate-policy.ts';
export { hasLlmSettings, LlmClient, llmSettings } from './core/llm-client.ts';
export { LlmPolicy } from './core/llm-policy.ts';
export {
  decodeGymTable,
  type OwnTable,
  type PlayInputs,
  type SharedInputs,
  shareInputs,
  takeInputs,
} from './core/playable.ts';
export type { AsyncPolicy, PolicyEpisode, PolicyStep } from './core/policy.ts';
export { playEpisode } from './core/policy.ts';
export {
  type BaselineModel,
  type BaselineResult,
  type BaselineRuntime,
  type BaselineTask,
  type BaselineWatcher,
  runBaseline,
  validAnswers,
} from './core/run-baseline.ts';
export { CrossEntropySearch } from './learning/cross-entropy-search.ts';
export { FeatureEncoder } from './learning/learning-environment.ts';
export type { PpoUpdate } from './learning/ppo.ts';
export {
  type TrainedRun,
  type TrainingProgress,
  trainPolicy,
  trainSeeds,
} from './learning/train-policy.ts';
export {
  type Algorithm,
  learningTaskOf,
  type MetricsLine,
  type TrainingRun,
} from './learning/training-run.ts';
export type { PolicyDescription } from './policies/catalogue.ts';
export type { FleetPolicy } from './policies/fleet-policies.ts';
export { AGENTS } from './registry.ts';
