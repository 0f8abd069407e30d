import type { ServeAction, ServeObservation, ServeTask } from '@servegym/environments';
import type { EngineProfile } from '@servegym/simulator';
import type { PolicyStep } from '../core/policy.ts';
import { PRECISION_LEARNER } from '../learning/learners.ts';
import { FeatureEncoder } from '../learning/learning-environment.ts';
import type { TrainedActor } from '../learning/trained-actor.ts';
import { adviseSteadyState } from './steady-state.ts';

const { features: FEATURES } = PRECISION_LEARNER.environment;
/**
 * Waiting requests over those that arrive in a window from which on the steady state decides: what the network learned does
 * not charge a backlog. A choice, made on validation episodes of the training distribution.
 */
const MOST_QUEUE = 1;

type Window = Pick<PolicyStep<ServeAction, ServeObservation>, 'observation' | 'previousAction' | 'stepIndex'>;

/**
 * Plays the steady state of the precision that a network takes. Its values are rewards over 14 windows beyond those of the
 * precision that the steady state advises; the margin by which another one must be better is the keep bonus of the actor.
 */
export function playPrecisions(task: ServeTask, profile: EngineProfile, actor: TrainedActor) {
  const advise = adviseSteadyState(task, profile);
  const encoder = new FeatureEncoder(FEATURES);
  const features = new Float32Array(FEATURES.length);
  return (window: Window): ServeAction => {
    const advice = advise(window);
    const { observation, previousAction } = window;
    encoder.encode({ ...observation, outlook: advice.outlook }, previousAction, features);
    if (observation.relative.queue_windows > MOST_QUEUE) return advice.action;
    const bins = Int32Array.of(advice.tier);
    actor.act(features, bins);
    return advice.at(bins[0]!);
  };
}
