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
  type TaskEvaluation,
} from './evaluation/evaluate-policy.ts';
export { interquartileMean } from './evaluation/interquartile-mean.ts';
export {
  type BootstrapOptions,
  type Interval,
  stratifiedBootstrap,
} from './evaluation/stratified-bootstrap.ts';
export type { PpoUpdate } from './learning/ppo.ts';
export { TensorFileError } from './learning/safetensors.ts';
export { encodeServeActor, type ServeActor } from './llmserve/serve-actor.ts';
export { encodeServeConstant, type ServeConstant } from './llmserve/serve-constant.ts';
export { type TrainServePpoOptions, trainServePpo } from './llmserve/train-serve-ppo.ts';
export { TrainedPolicyError } from './llmserve/trained-policy-error.ts';
export { type TuneConstantOptions, type TunedConstant, tuneConstant } from './llmserve/tune-constant.ts';
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
export type { Policy, PolicyEpisode, PolicyStep } from './policy.ts';
