export { AGENT_JOB_KINDS } from './agent-job-kinds.ts';
export {
  type CheckEffort,
  type CheckResult,
  QUICK,
  type TaskCheck,
  THOROUGH,
} from './core/checks/task-check.ts';
export { compareEvaluations, type PairedDifference, type Standings } from './core/compare-evaluations.ts';
export {
  agentsOf,
  EVALUATION_SPLITS,
  type EvaluationSplit,
  episodeJobs,
  evaluate,
  evaluateShifted,
  type FoundPolicy,
  findPolicy,
  isPolicyFile,
  type PlayPlan,
  record,
  SHIFTED,
  tasksToPlay,
} from './core/evaluate.ts';
export {
  type Estimate,
  type Evaluation,
  evaluatePolicy,
  joinEvaluations,
  type TaskEvaluation,
} from './core/evaluate-policy.ts';
export { type AnchoredReturn, type GainFigures, gainFigures } from './core/gain.ts';
export { hasLlmSettings, LlmClient, llmSettings } from './core/llm-client.ts';
export { LlmPolicy } from './core/llm-policy.ts';
export type { PromptedEnvironment } from './core/llm-prompt.ts';
export { playEpisode } from './core/play-episode.ts';
export { decodeGymTable, type OwnTable, type PlayInputs } from './core/playable.ts';
export type { PlayableEnvironment } from './core/playable-environment.ts';
export type { AsyncPolicy, Policy, PolicyEpisode, PolicyStep } from './core/policy.ts';
export { type DatasetRow, type DatasetValue, recordEpisodes } from './core/record-episodes.ts';
export {
  BASELINE_ENVIRONMENT_IDS,
  type BaselineEnvironment,
  type BaselineEnvironmentId,
  type BaselineModel,
  type BaselineResult,
  type BaselineRuntime,
  type BaselineTask,
  type BaselineWatcher,
  baselineEnvironment,
  runBaseline,
  validAnswers,
} from './core/run-baseline.ts';
export { type SharedInputs, shareInputs, takeInputs } from './core/shared-inputs.ts';
export { haveDemonstrated } from './learning/demonstrate.ts';
export { distill } from './learning/distill.ts';
export { FeatureEncoder } from './learning/feature-encoder.ts';
export type { Kernels } from './learning/kernels.ts';
export { decodeNetwork, encodeNetwork, networkMetadata, SERVE_LEARNER } from './learning/learners.ts';
export type { LearnableEnvironment } from './learning/learning-tasks.ts';
export { type LayerSizes, MultilayerPerceptron, parameterCount } from './learning/multilayer-perceptron.ts';
export { encodeOnnxActor } from './learning/onnx-actor.ts';
export type { PpoUpdate } from './learning/ppo.ts';
export { simdKernels } from './learning/simd-kernels.ts';
export { eventFileHeader, scalarRecord, startRecord } from './learning/tensorboard-events.ts';
export {
  type PolicyFiles,
  type TrainedRun,
  type TrainingProgress,
  trainPolicy,
  trainSeeds,
} from './learning/train-policy.ts';
export {
  type Algorithm,
  decodeStoppedRun,
  finalReturn,
  isNetworkAlgorithm,
  learningTaskOf,
  type MetricsLine,
  type StoppingPoint,
  type TrainingRun,
} from './learning/training-run.ts';
export { tuneConstant, tunePhase } from './learning/tune-constant.ts';
export { tuneFleet } from './learning/tune-fleet.ts';
export { tuneRule } from './learning/tune-rule.ts';
export * from './legacy.ts';
export type { FleetReferenceInput, ReferenceInput, SeededTraffic } from './planning/anchor-jobs.ts';
export { checkKnobDominance } from './planning/check-serve.ts';
export { planClairvoyant } from './planning/plan-clairvoyant.ts';
export type { PolicyDescription } from './policies/catalogue.ts';
export type { FleetPolicy } from './policies/fleet-policies.ts';
export { type RuleParameters, TUNED_RULES_URL } from './policies/rule-policy.ts';
export type { ServePolicy } from './policies/serve-policies.ts';
export {
  isNetwork,
  isShipped,
  readManifest,
  SHIPPED_FOLDER,
  SHIPPED_FORMATS,
  type ShippedName,
  shippedFile,
  shippedOnnx,
  whyNotShipped,
} from './policies/shipped-policy.ts';
export { AGENTS, type EnvironmentAgents } from './registry.ts';
