export {
  type CheckEffort,
  type CheckResult,
  QUICK,
  type TaskCheck,
  THOROUGH,
} from './checks/check-result.ts';
export { checkGymTask } from './checks/inferencegym/check-gym-task.ts';
export { checkTask } from './checks/llmserve/check-task.ts';
export { type Exploit, type ExploitScores, exploitScores, exploitsOf } from './checks/llmserve/exploits.ts';
export { checkKnobDominance, type GoodEpisode } from './checks/llmserve/knob-dominance.ts';
export {
  type Comparison,
  compareEvaluations,
  type PairedDifference,
  type ProfilePoint,
  type Standings,
} from './evaluation/compare-evaluations.ts';
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
} from './evaluation/evaluate-policy.ts';
export { interquartileMean } from './evaluation/interquartile-mean.ts';
export {
  type BootstrapOptions,
  type Interval,
  stratifiedBootstrap,
} from './evaluation/stratified-bootstrap.ts';
export { encodeOnnxActor } from './formats/onnx-actor.ts';
export {
  eventFileHeader,
  type ScalarEvent,
  scalarRecord,
  startRecord,
} from './formats/tensorboard-events.ts';
export { evaluatedGym } from './inferencegym/evaluated-gym.ts';
export { gymLearningTask, type OwnTable } from './inferencegym/gym-learning-task.ts';
export {
  createGymPolicy,
  type GymPolicy,
  listGymPolicies,
  loadGymPolicy,
} from './inferencegym/gym-policies.ts';
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
export { PPO_DEFAULTS, Ppo, type PpoOptions, type PpoStart, type PpoUpdate } from './learning/ppo.ts';
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
export { type PpoRecipe, type PpoTrained, type PpoTraining, trainPpo } from './learning/train-ppo.ts';
export { type ActorWeights, decodeActor, encodeActor, TrainedActor } from './learning/trained-actor.ts';
export { LlmClient, type LlmUsage } from './llm/llm-client.ts';
export { type LlmAnswers, type LlmEnvironment, LlmPolicy, type LlmPolicyOptions } from './llm/llm-policy.ts';
export { hasLlmSettings, LlmError, type LlmSettings, llmSettings } from './llm/llm-settings.ts';
export { type DemonstratedEpisode, demonstrate, joinDemonstrations } from './llmserve/demonstrate.ts';
export { decodeDemonstrations, encodeDemonstrations } from './llmserve/demonstrations-file.ts';
export {
  type DemonstrationRequest,
  DISTILLATION_ROUNDS,
  type DistillationRound,
  distill,
} from './llmserve/distill.ts';
export { evaluatedServe } from './llmserve/evaluated-serve.ts';
export { encodeRegimeTable, type RegimeTable } from './llmserve/regime-table.ts';
export {
  playRegimes,
  type RegimeGeneration,
  type RegimeTrial,
  searchRegimes,
} from './llmserve/search-regimes.ts';
export { decodeServeActor, encodeServeActor, type ServeActor } from './llmserve/serve-actor.ts';
export { encodeServeConstant, type ServeConstant } from './llmserve/serve-constant.ts';
export { SERVE_FINE_TUNING, SERVE_PPO, serveLearningTask } from './llmserve/serve-learning-task.ts';
export { TrainedPolicyError } from './llmserve/trained-policy-error.ts';
export {
  type TuneConstantOptions,
  type TunedConstant,
  tuneConstant,
  tunePhase,
} from './llmserve/tune-constant.ts';
export { policyUnderScenario, underScenario } from './llmserve/under-scenario.ts';
export {
  type ClairvoyantOptions,
  type ClairvoyantPlan,
  planClairvoyant,
} from './planning/plan-clairvoyant.ts';
export {
  type Alternative,
  planRecedingHorizon,
  type RecedingHorizonOptions,
} from './planning/plan-receding-horizon.ts';
export { TrafficBelief } from './planning/traffic-belief.ts';
export {
  type EpisodePlan,
  type PlayableEnvironment,
  type PlayedEpisode,
  type PlayedStep,
  playEpisode,
} from './play-episode.ts';
export {
  createPolicy,
  listPolicies,
  type PolicyDescription,
  type ServePolicy,
} from './policies/catalogue.ts';
export { loadTrainedPolicy, type TrainedPolicy } from './policies/load-trained-policy.ts';
export { MpcPolicy } from './policies/mpc-policy.ts';
export { PpoPolicy } from './policies/ppo-policy.ts';
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
export type { AsyncPolicy, Policy, PolicyEpisode, PolicyStep } from './policy.ts';
