import type { Feature } from '@servegym/environments';
import type { Policy, PolicyEpisode, PolicyStep } from '../core/policy.ts';
import type { ActionCodec } from './action-codec.ts';
import { FeatureEncoder } from './feature-encoder.ts';
import { type ActorWeights, TrainedActor } from './trained-actor.ts';
import { requireTask } from './trained-for.ts';

/** A trained network, and what its inputs and outputs stand for. */
interface PlayedNetwork<Action extends object> {
  readonly taskId: string | number;
  readonly weights: ActorWeights;
  readonly features: readonly Feature[];
  readonly codec: ActionCodec<Action>;
  /** Name of the policy. */
  readonly name: string;
}

/** Sets each knob that its task leaves free to the value that a trained network finds likeliest to be best. */
export class NetworkPolicy<Action extends object, Observation extends object>
  implements Policy<Action, Observation>
{
  readonly name: string;
  readonly #taskId: string | number;
  readonly #codec: ActionCodec<Action>;
  readonly #actor: TrainedActor;
  readonly #encoder: FeatureEncoder;
  readonly #features: Float32Array;

  constructor({ taskId, weights, features, codec, name }: PlayedNetwork<Action>) {
    this.name = name;
    this.#taskId = taskId;
    this.#codec = codec;
    this.#actor = new TrainedActor(weights);
    this.#encoder = new FeatureEncoder(features);
    this.#features = new Float32Array(this.#encoder.size);
  }

  /** @throws EnvironmentError `OTHER_TASK` for another task than the network was trained on */
  reset({ taskId }: PolicyEpisode): void {
    requireTask(this.#taskId, taskId);
    this.#encoder.reset();
  }

  act({ observation, previousAction }: PolicyStep<Action, Observation>): Action {
    this.#encoder.encode(observation, previousAction, this.#features);
    const bins = Int32Array.from(this.#codec.encode(previousAction));
    this.#actor.act(this.#features, bins);
    return this.#codec.decode(bins);
  }
}
