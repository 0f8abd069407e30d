export { AGENT_JOB_KINDS } from './agent-job-kinds.ts';
export {
  type CheckEffort,
  type CheckResult,
  QUICK,
  type TaskCheck,
  THOROUGH,
} from './core/checks/check-result.ts';
export {
  type Comparison,
  compareEvaluations,
  type PairedDifference,
  type ProfilePoint,
  type Standings,
} from './core/evaluation/compare-evaluations.ts';
export {
  type EpisodeResult,
  type Estimate,
  type EvaluatedEnvironment,
  type Evaluation,
  type EvaluationPlan,
  evaluatePolicy,
  evaluationOf,
  joinEvaluations,
  type PlayedTask,
  playTask,
  type ServiceFigures,
  type ServiceMeter,
  type TaskEvaluation,
} from './core/evaluation/evaluate-policy.ts';
export { LlmClient, type LlmUsage } from './core/llm/llm-client.ts';
export {
  type LlmAnswers,
  type LlmEnvironment,
  LlmPolicy,
  type LlmPolicyOptions,
} from './core/llm/llm-policy.ts';
export { hasLlmSettings, LlmError, type LlmSettings, llmSettings } from './core/llm/llm-settings.ts';
export {
  type EpisodePlan,
  type PlayableEnvironment,
  type PlayedEpisode,
  type PlayedStep,
  playEpisode,
} from './core/play-episode.ts';
export type { AsyncPolicy, Policy, PolicyEpisode, PolicyStep } from './core/policy.ts';
export { type DatasetRow, type DatasetValue, recordEpisodes } from './core/record-episodes.ts';
export { encodeOnnxActor } from './formats/onnx-actor.ts';
export {
  eventFileHeader,
  type ScalarEvent,
  scalarRecord,
  startRecord,
} from './formats/tensorboard-events.ts';
export { checkGymTask } from './inferencegym/checks/check-gym-task.ts';
export { evaluatedGym } from './inferencegym/evaluated-gym.ts';
export { decodeGymTable, gymLearningTask, type OwnTable } from './inferencegym/learn/gym-learning-task.ts';
export {
  createGymPolicy,
  type GymPolicy,
  listGymPolicies,
  loadGymPolicy,
} from './inferencegym/policies/gym-policies.ts';
export type { Kernels } from './learning/kernels.ts';
export {
  type EpisodeEnd,
  type LearningEnvironment,
  type LearningStep,
  RUNNING,
  TERMINATED,
  TRUNCATED,
} from './learning/learning-environment.ts';
export type { LearningTask, TrainingNote } from './learning/learning-task.ts';
export { type LayerSizes, MultilayerPerceptron, parameterCount } from './learning/multilayer-perceptron.ts';
export { plainKernels } from './learning/plain-kernels.ts';
export {
  PPO_DEFAULTS,
  Ppo,
  type PpoOptions,
  type PpoRecipe,
  type PpoStart,
  type PpoTrained,
  type PpoTraining,
  type PpoUpdate,
  trainPpo,
} from './learning/ppo.ts';
export {
  decodeCheckpoint,
  encodeCheckpoint,
  type PpoCheckpoint,
} from './learning/ppo-checkpoint.ts';
export { type RolloutSource, SerialRollouts } from './learning/rollout-source.ts';
export { RolloutThreads, type ThreadedRollouts } from './learning/rollout-threads.ts';
export { TensorFileError } from './learning/safetensors.ts';
export { simdKernels } from './learning/simd-kernels.ts';
export { type TraceSchedule, traceSeed } from './learning/trace-schedule.ts';
export { type ActorWeights, decodeActor, encodeActor, TrainedActor } from './learning/trained-actor.ts';
export { checkTask } from './llmserve/checks/check-task.ts';
export { type Exploit, type ExploitScores, exploitScores, exploitsOf } from './llmserve/checks/exploits.ts';
export { checkKnobDominance, type GoodEpisode } from './llmserve/checks/knob-dominance.ts';
export {
  EVALUATION_SPLITS,
  type EvaluationSplit,
  evaluateServe,
  evaluateShifted,
  SHIFTED,
} from './llmserve/evaluate-serve.ts';
export { evaluatedServe } from './llmserve/evaluated-serve.ts';
export { type DemonstratedEpisode, demonstrate, joinDemonstrations } from './llmserve/learn/demonstrate.ts';
export { haveDemonstrated } from './llmserve/learn/demonstrate-job.ts';
export { decodeDemonstrations, encodeDemonstrations } from './llmserve/learn/demonstrations-file.ts';
export {
  type DemonstrationRequest,
  DISTILLATION_ROUNDS,
  type DistillationRound,
  distill,
} from './llmserve/learn/distill.ts';
export { encodeRegimeTable, type RegimeTable } from './llmserve/learn/regime-table.ts';
export {
  playRegimes,
  type RegimeGeneration,
  type RegimeTrial,
  searchRegimes,
} from './llmserve/learn/search-regimes.ts';
export { decodeServeActor, encodeServeActor, type ServeActor } from './llmserve/learn/serve-actor.ts';
export { encodeServeConstant, type ServeConstant } from './llmserve/learn/serve-constant.ts';
export { SERVE_FINE_TUNING, SERVE_PPO, serveLearningTask } from './llmserve/learn/serve-learning-task.ts';
export { TrainedPolicyError } from './llmserve/learn/trained-policy-error.ts';
export {
  type TuneConstantOptions,
  type TunedConstant,
  tuneConstant,
  tunePhase,
} from './llmserve/learn/tune-constant.ts';
export {
  type ClairvoyantOptions,
  type ClairvoyantPlan,
  planClairvoyant,
} from './llmserve/planning/plan-clairvoyant.ts';
export {
  type Alternative,
  planRecedingHorizon,
  type RecedingHorizonOptions,
} from './llmserve/planning/plan-receding-horizon.ts';
export type { ReferenceInput } from './llmserve/planning/reference-job.ts';
export { TrafficBelief } from './llmserve/planning/traffic-belief.ts';
export {
  createPolicy,
  isPlanner,
  listPolicies,
  type PolicyDescription,
  type ServePolicy,
} from './llmserve/policies/catalogue.ts';
export { loadTrainedPolicy, type TrainedPolicy } from './llmserve/policies/load-trained-policy.ts';
export { MpcPolicy } from './llmserve/policies/mpc-policy.ts';
export { PpoPolicy } from './llmserve/policies/ppo-policy.ts';
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
export type { PolicyReturnsInput, SeededTraffic } from './llmserve/policy-returns-job.ts';
export { recordWithJobs } from './llmserve/record-episode-job.ts';
export {
  addSharedTask,
  addSharedTrace,
  type PolicySource,
  type SharedPolicy,
  sharedOfPolicy,
  sharePolicy,
  shareTask,
  shareTrace,
} from './llmserve/shared-inputs.ts';
export { policyUnderScenario, underScenario } from './llmserve/under-scenario.ts';
export { decodeStoppedRun, type StoppedRun, type StoppingPoint } from './training/stopped-run.ts';
export {
  type PolicyFiles,
  type TrainedRun,
  type TrainingOptions,
  type TrainingProgress,
  trainPolicy,
} from './training/train-policy.ts';
export { type SeedsOptions, trainSeeds } from './training/train-policy-job.ts';
export {
  type Algorithm,
  finalReturn,
  isNetworkAlgorithm,
  LEARNABLE_TASKS,
  type LearnableEnvironment,
  type Lessons,
  learningTaskOf,
  type MetricsLine,
  type TrainingRun,
} from './training/training-run.ts';
