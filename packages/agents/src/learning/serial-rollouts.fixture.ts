import type { Kernels } from './kernels.ts';
import type { LearningEnvironment } from './learning-environment.ts';
import {
  allocatePolicy,
  allocateRollout,
  type PlayPlan,
  type PublishedPolicy,
  type Rollout,
  RolloutPlayer,
} from './rollout-player.ts';

import type { RolloutSource } from './rollout-threads.ts';

/** Environments that play on the calling thread. */
export class SerialRollouts implements RolloutSource {
  readonly plan: PlayPlan;
  readonly policy: PublishedPolicy;
  readonly rollout: Rollout;
  readonly #player: RolloutPlayer;

  /**
   * @param steps that each environment plays in a rollout
   * @throws RangeError when there are no environments
   */
  constructor(environments: readonly LearningEnvironment[], steps: number, plan: PlayPlan, kernels: Kernels) {
    const [first] = environments;
    if (first === undefined) throw new RangeError('Expected at least one environment');
    const { observationSize, headSizes } = first;
    this.plan = plan;
    this.rollout = allocateRollout({ environments: environments.length, steps, observationSize, headSizes });
    this.policy = allocatePolicy({ observationSize, headSizes, hidden: plan.hidden });
    const { rollout, policy } = this;
    this.#player = new RolloutPlayer(environments, { plan, rollout, policy, first: 0 }, kernels);
  }

  play(): void {
    this.#player.play();
  }
}
