import { ServeEpisode } from '@servegym/environments';
import type { Demonstrations } from '../../learning/behaviour-cloning.ts';
import { knownTask } from '../known-task.ts';
import type { ServePolicy } from '../policies/catalogue.ts';
import { ServeActionCodec } from './serve-action-codec.ts';
import { ServeObservationEncoder } from './serve-observation-encoder.ts';

/** An episode that a teacher has commented on. */
export interface DemonstratedEpisode extends Demonstrations {
  /** Of what was played. */
  readonly return: number;
}

/**
 * Plays an episode and puts down, for every window, what the teacher would do. `player` is the one who acts: the teacher
 * itself, or a student that is shown what to do where its own actions have led. Ross et al., "A Reduction of Imitation
 * Learning and Structured Prediction to No-Regret Online Learning" (DAgger), AISTATS 2011.
 */
export function demonstrate(
  taskId: string,
  trace: number,
  teacher: ServePolicy,
  player: ServePolicy = teacher,
): DemonstratedEpisode {
  const task = knownTask(taskId);
  const codec = new ServeActionCodec(task);
  const heads = codec.headSizes.length;
  const size = ServeObservationEncoder.size;
  const observations = new Float32Array(task.windows * size);
  const binsInForce = new Int32Array(task.windows * heads);
  const actions = new Int32Array(task.windows * heads);
  const episode = new ServeEpisode(task, trace);
  const encoder = new ServeObservationEncoder();
  teacher.reset({ taskId, seed: trace });
  if (player !== teacher) player.reset({ taskId, seed: trace });
  let reward: number | null = null;
  while (!episode.done) {
    const { window: stepIndex, action: previousAction } = episode;
    const step = { observation: episode.observation(), reward, previousAction, stepIndex };
    encoder.encode(step, observations.subarray(stepIndex * size, (stepIndex + 1) * size));
    const advised = teacher.act(step);
    binsInForce.set(codec.encode(previousAction), stepIndex * heads);
    actions.set(codec.encode(advised), stepIndex * heads);
    reward = episode.step(player === teacher ? advised : player.act(step));
  }
  return { observations, binsInForce, actions, return: episode.totals.reward };
}

/** Episodes, one after the other. */
export function joinDemonstrations(episodes: readonly Demonstrations[]): Demonstrations {
  const total = (key: keyof Demonstrations) =>
    episodes.reduce((sum, episode) => sum + episode[key].length, 0);
  const joined = {
    observations: new Float32Array(total('observations')),
    binsInForce: new Int32Array(total('binsInForce')),
    actions: new Int32Array(total('actions')),
  };
  const at = { observations: 0, binsInForce: 0, actions: 0 };
  for (const episode of episodes) {
    for (const key of ['observations', 'binsInForce', 'actions'] as const) {
      joined[key].set(episode[key], at[key]);
      at[key] += episode[key].length;
    }
  }
  return joined;
}
