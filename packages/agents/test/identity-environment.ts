import { isMainThread } from 'node:worker_threads';
import { RandomStream } from '@servegym/simulator';
import { type LearningEnvironment, RUNNING, TERMINATED } from '../src/learning/learning-environment.ts';

/** Shows two symbols; half a reward for naming each, one a head. Ten windows an episode. */
export function identityEnvironment(): LearningEnvironment {
  const sizes = [4, 3];
  let random = new RandomStream(0, 'identity');
  let shown = [0, 0];
  let window = 0;
  const show = (observation: Float32Array) => {
    shown = sizes.map((size) => random.integer(0, size - 1));
    observation.fill(0);
    observation[shown[0]] = 1;
    observation[4 + shown[1]] = 1;
  };
  return {
    observationSize: 7,
    headSizes: sizes,
    initialBins: [3, 2],
    reset(seed, observation) {
      random = new RandomStream(seed, 'identity');
      window = 0;
      show(observation);
    },
    step(action, observation) {
      const named = shown.filter((symbol, head) => action[head] === symbol).length;
      show(observation);
      window++;
      return { reward: named / 2, end: window === 10 ? TERMINATED : RUNNING };
    },
  };
}

/** For threads: the identity, failing at window `failAt` on all threads but the main one. */
export function createEnvironment({ failAt = -1 }: { failAt?: number }): LearningEnvironment {
  const environment = identityEnvironment();
  let window = 0;
  return {
    ...environment,
    step(action, observation) {
      if (window++ === failAt && !isMainThread) throw new Error(`failed at window ${failAt}`);
      return environment.step(action, observation);
    },
  };
}
