export { AGENT_JOB_KINDS } from './agent-job-kinds.ts';
export {
  type CheckEffort,
  type CheckResult,
  QUICK,
  type TaskCheck,
  THOROUGH,
} from './core/checks/check-result.ts';
export {
  compareEvaluations,
  type PairedDifference,
  type ProfilePoint,
  type Standings,
} from './core/compare-evaluations.ts';
export {
  type Estimate,
  type Evaluation,
  type EvaluationPlan,
  evaluatePolicy,
  joinEvaluations,
  type TaskEvaluation,
} from './core/evaluate-policy.ts';
export {
  type AnchoredReturn,
  type GainFigures,
  gainFigures,
  type ReturnAnchors,
} from './core/gain.ts';
export {
  hasLlmSettings,
  LlmClient,
  llmSettings,
} from './core/llm-client.ts';
export { LlmPolicy } from './core/llm-policy.ts';
export type { PromptedEnvironment } from './core/llm-prompt.ts';
export { playEpisode } from './core/play-episode.ts';
export type { PlayableEnvironment } from './core/playable-environment.ts';
export type { AsyncPolicy, Policy, PolicyEpisode, PolicyStep } from './core/policy.ts';
export { type DatasetRow, type DatasetValue, recordEpisodes } from './core/record-episodes.ts';
export { AgentError } from './error-catalogue.ts';
export { checkFleetTask } from './planning/check-fleet.ts';
export { tuneFleet } from './learning/tune-fleet.ts';
export type { FleetReferenceInput } from './planning/fleet-reference-job.ts';
export { planFleet } from './planning/plan-fleet.ts';
export { playableFleet } from './core/playable-fleet.ts';
export { createFleetPolicy, listFleetPolicies, loadFleetPolicy } from './policies/fleet-policies.ts';
export type { FleetPolicy } from './policies/fleet-policy.ts';
export { encodeOnnxActor } from './learning/onnx-actor.ts';
export { eventFileHeader, scalarRecord, startRecord } from './learning/tensorboard-events.ts';
export { checkGymTask } from './planning/check-gym.ts';
export { decodeGymTable, type OwnTable } from './learning/gym-learning-task.ts';
export { playableGym } from './core/playable-gym.ts';
export {
  createGymPolicy,
  type GymPolicy,
  listGymPolicies,
  loadGymPolicy,
} from './policies/gym-policies.ts';
export { FeatureEncoder } from './learning/feature-encoder.ts';
export { type Kernels, plainKernels } from './learning/kernels.ts';
export { type LayerSizes, MultilayerPerceptron, parameterCount } from './learning/multilayer-perceptron.ts';
export type { PpoUpdate } from './learning/ppo.ts';
export { simdKernels } from './learning/simd-kernels.ts';
export { checkKnobDominance, checkTask } from './planning/check-serve.ts';
export {
  EVALUATION_SPLITS,
  type EvaluationSplit,
  evaluateServe,
  evaluateShifted,
  SHIFTED,
} from './core/evaluate-serve.ts';
export { haveDemonstrated } from './learning/demonstrate.ts';
export { distill } from './learning/distill.ts';
export { decodeServeActor, encodeServeActor } from './learning/policy-files.ts';
export { serveLearningTask } from './learning/serve-learning-task.ts';
export { tuneConstant, tunePhase } from './learning/tune-constant.ts';
export { tuneRule } from './learning/tune-rule.ts';
export { planClairvoyant } from './planning/plan-clairvoyant.ts';
export type { ReferenceInput } from './planning/reference-job.ts';
export type { SeasonAnchorsInput, ServeSeasonAnchors } from './planning/season-anchors-job.ts';
export { playableServe, policyUnderScenario } from './core/playable-serve.ts';
export {
  createPolicy,
  isPlanner,
  listPolicies,
  type PolicyDescription,
  type ServePolicy,
} from './policies/serve-policies.ts';
export { type RuleParameters, TUNED_RULES_URL } from './policies/rule-policy.ts';
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
export { loadTrainedPolicy } from './policies/trained-policies.ts';
export type { PolicyReturnsInput, SeededTraffic } from './core/policy-returns-job.ts';
export { recordWithJobs } from './core/record-episode-job.ts';
export {
  addSharedTask,
  addSharedTrace,
  type PolicySource,
  sharedOfPolicy,
  sharePolicy,
  shareTask,
  shareTrace,
} from './core/shared-inputs.ts';
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
export {
  type PolicyFiles,
  type TrainedRun,
  type TrainingProgress,
  trainPolicy,
  trainSeeds,
} from './learning/train-policy.ts';
export {
  ALGORITHMS_OF,
  type Algorithm,
  decodeStoppedRun,
  finalReturn,
  isNetworkAlgorithm,
  LEARNABLE_TASKS,
  type LearnableEnvironment,
  learningTaskOf,
  type MetricsLine,
  type StoppingPoint,
  type TrainingRun,
} from './learning/training-run.ts';
