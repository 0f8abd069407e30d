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
} from './core/evaluation/compare-evaluations.ts';
export {
  type Estimate,
  type Evaluation,
  type EvaluationPlan,
  evaluatePolicy,
  joinEvaluations,
  type TaskEvaluation,
} from './core/evaluation/evaluate-policy.ts';
export {
  type AnchoredReturn,
  type GainFigures,
  gainFigures,
  type ReturnAnchors,
} from './core/evaluation/gain.ts';
export {
  hasLlmSettings,
  LlmClient,
  llmSettings,
} from './core/llm/llm-client.ts';
export { LlmPolicy } from './core/llm/llm-policy.ts';
export type { PromptedEnvironment } from './core/llm/llm-prompt.ts';
export { playEpisode } from './core/play-episode.ts';
export type { PlayableEnvironment } from './core/playable-environment.ts';
export type { AsyncPolicy, Policy, PolicyEpisode, PolicyStep } from './core/policy.ts';
export { type DatasetRow, type DatasetValue, recordEpisodes } from './core/record-episodes.ts';
export { AgentError } from './error-catalogue.ts';
export { checkFleetTask } from './fleet/checks/check-fleet-task.ts';
export { tuneFleet } from './fleet/learn/tune-fleet.ts';
export type { FleetReferenceInput } from './fleet/planning/fleet-reference-job.ts';
export { planFleet } from './fleet/planning/plan-fleet.ts';
export { playableFleet } from './fleet/playable-fleet.ts';
export { createFleetPolicy, listFleetPolicies, loadFleetPolicy } from './fleet/policies/fleet-policies.ts';
export type { FleetPolicy } from './fleet/policies/fleet-policy.ts';
export { encodeOnnxActor } from './formats/onnx-actor.ts';
export { eventFileHeader, scalarRecord, startRecord } from './formats/tensorboard-events.ts';
export { checkGymTask } from './inferencegym/checks/check-gym-task.ts';
export { decodeGymTable, type OwnTable } from './inferencegym/learn/gym-learning-task.ts';
export { playableGym } from './inferencegym/playable-gym.ts';
export {
  createGymPolicy,
  type GymPolicy,
  listGymPolicies,
  loadGymPolicy,
} from './inferencegym/policies/gym-policies.ts';
export { FeatureEncoder } from './learning/feature-encoder.ts';
export { type Kernels, plainKernels } from './learning/kernels.ts';
export { type LayerSizes, MultilayerPerceptron, parameterCount } from './learning/multilayer-perceptron.ts';
export type { PpoUpdate } from './learning/ppo.ts';
export { simdKernels } from './learning/simd-kernels.ts';
export { checkKnobDominance, checkTask } from './llmserve/checks/check-task.ts';
export {
  EVALUATION_SPLITS,
  type EvaluationSplit,
  evaluateServe,
  evaluateShifted,
  SHIFTED,
} from './llmserve/evaluate-serve.ts';
export { haveDemonstrated } from './llmserve/learn/demonstrate.ts';
export { distill } from './llmserve/learn/distill.ts';
export { decodeServeActor, encodeServeActor } from './llmserve/learn/policy-files.ts';
export { serveLearningTask } from './llmserve/learn/serve-learning-task.ts';
export { tuneConstant, tunePhase } from './llmserve/learn/tune-constant.ts';
export { tuneRule } from './llmserve/learn/tune-rule.ts';
export { planClairvoyant } from './llmserve/planning/plan-clairvoyant.ts';
export type { ReferenceInput } from './llmserve/planning/reference-job.ts';
export type { SeasonAnchorsInput, ServeSeasonAnchors } from './llmserve/planning/season-anchors-job.ts';
export { playableServe, policyUnderScenario } from './llmserve/playable-serve.ts';
export {
  createPolicy,
  isPlanner,
  listPolicies,
  type PolicyDescription,
  type ServePolicy,
} from './llmserve/policies/catalogue.ts';
export { type RuleParameters, TUNED_RULES_URL } from './llmserve/policies/rule-policy.ts';
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
} from './llmserve/policies/shipped-policy.ts';
export { loadTrainedPolicy } from './llmserve/policies/trained-policies.ts';
export type { PolicyReturnsInput, SeededTraffic } from './llmserve/policy-returns-job.ts';
export { recordWithJobs } from './llmserve/record-episode-job.ts';
export {
  addSharedTask,
  addSharedTrace,
  type PolicySource,
  sharedOfPolicy,
  sharePolicy,
  shareTask,
  shareTrace,
} from './llmserve/shared-inputs.ts';
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
} from './training/run-baseline.ts';
export {
  type PolicyFiles,
  type TrainedRun,
  type TrainingProgress,
  trainPolicy,
  trainSeeds,
} from './training/train-policy.ts';
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
} from './training/training-run.ts';
