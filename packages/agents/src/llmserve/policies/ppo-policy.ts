import type { ServeAction, ServeObservation } from '@servegym/environments';
import type { Policy, PolicyEpisode, PolicyStep } from '../../core/policy.ts';
import { TrainedActor } from '../../learning/trained-actor.ts';
import { knownTask } from '../known-task.ts';
import { ServeActionCodec } from '../learn/serve-action-codec.ts';
import type { ServeActor } from '../learn/serve-actor.ts';
import { ServeObservationEncoder } from '../learn/serve-observation-encoder.ts';
import { requireTask } from '../trained-task.ts';

/** Sets each knob that its task leaves free to what a trained network finds likeliest to be best. */
export class PpoPolicy implements Policy<ServeAction, ServeObservation> {
  readonly name: string;
  readonly #taskId: string;
  readonly #codec: ServeActionCodec;
  readonly #actor: TrainedActor;
  readonly #encoder = new ServeObservationEncoder();
  readonly #features = new Float32Array(ServeObservationEncoder.size);

  constructor({ taskId, weights, training }: ServeActor) {
    this.name = training.algorithm === 'distill' ? 'distilled' : 'ppo';
    this.#taskId = taskId;
    this.#codec = new ServeActionCodec(knownTask(taskId));
    this.#actor = new TrainedActor(weights);
  }

  /** Throws a `RangeError` for another task than the network was trained on. */
  reset({ taskId }: PolicyEpisode): void {
    requireTask(this.#taskId, taskId);
    this.#encoder.reset();
  }

  act(step: PolicyStep<ServeAction, ServeObservation>): ServeAction {
    this.#encoder.encode(step, this.#features);
    const bins = Int32Array.from(this.#codec.encode(step.previousAction));
    this.#actor.act(this.#features, bins);
    return this.#codec.decode(bins);
  }
}
