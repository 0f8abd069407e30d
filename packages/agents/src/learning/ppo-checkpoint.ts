import { EnvironmentError } from '@servegym/openenv/definition';
import type { NetworkSnapshot } from './actor-critic.ts';
import { RUNNING } from './learning-environment.ts';
import type { ResumePoint, Rollout, RunningEpisode } from './rollout-player.ts';
import type { Moments } from './running-normalizer.ts';
import { decodeSafetensors, encodeSafetensors, type Tensor } from './safetensors.ts';

/** All that the next updates of a run depend on, beside its options. */
export interface PpoCheckpoint extends NetworkSnapshot {
  /** Actions learned from so far, over all environments. */
  readonly steps: number;
  readonly observations: Moments;
  readonly returns: Moments;
  /** Of each environment's running episode. */
  readonly discountedReturns: readonly number[];
  readonly episodeReturns: readonly number[];
  readonly episodes: readonly RunningEpisode[];
}

/** Points that environments go on from, for a run to go on. */
export function resumePoint({ steps, episodes }: PpoCheckpoint): ResumePoint {
  return { steps: steps / episodes.length, episodes };
}

/** Actions of the running episodes, by which environments are brought there again. */
export class EpisodeLog {
  readonly #headCount: number;
  readonly #running: { episode: number; actions: number[] }[];

  constructor(environments: number, headCount: number, episodes?: readonly RunningEpisode[]) {
    this.#headCount = headCount;
    this.#running = Array.from({ length: environments }, (_, e) => ({
      episode: episodes?.[e]?.episode ?? 0,
      actions: [...(episodes?.[e]?.actions ?? [])],
    }));
  }

  append({ environments, steps, actions, ends }: Rollout): void {
    const heads = this.#headCount;
    for (let at = 0; at < environments * steps; at++) {
      const running = this.#running[at % environments];
      for (let head = 0; head < heads; head++) running.actions.push(actions[at * heads + head]);
      if (ends[at] === RUNNING) continue;
      running.episode++;
      running.actions.length = 0;
    }
  }

  episodes(): RunningEpisode[] {
    return this.#running.map(({ episode, actions }) => ({ episode, actions: [...actions] }));
  }
}

const VERSION = '1';

/** Writes a checkpoint as safetensors, the networks as tensors and the rest as JSON. `metadata` is kept beside it. */
export function encodeCheckpoint(
  { parameters, firstMoments, secondMoments, ...rest }: PpoCheckpoint,
  metadata: Readonly<Record<string, string>>,
): Uint8Array {
  const tensor = (values: Float32Array): Tensor => ({ shape: [values.length], values });
  return encodeSafetensors({
    tensors: {
      parameters: tensor(parameters),
      first_moments: tensor(firstMoments),
      second_moments: tensor(secondMoments),
    },
    metadata: { ...metadata, checkpoint: VERSION, state: JSON.stringify(rest) },
  });
}

/** Reads what `encodeCheckpoint` wrote. @throws EnvironmentError `TENSOR_FILE` */
export function decodeCheckpoint(file: Uint8Array): {
  checkpoint: PpoCheckpoint;
  metadata: Readonly<Record<string, string>>;
} {
  const { tensors, metadata } = decodeSafetensors(file);
  const { checkpoint, state, ...others } = metadata;
  if (checkpoint !== VERSION || state === undefined) {
    throw new EnvironmentError(
      'TENSOR_FILE',
      `Expected a training checkpoint of version ${VERSION}, got ${checkpoint === undefined ? 'none' : `version ${checkpoint}`}`,
    );
  }
  const values = (name: string) => {
    const tensor = tensors[name];
    if (!(tensor?.values instanceof Float32Array)) {
      throw new EnvironmentError('TENSOR_FILE', `Expected a tensor \`${name}\` of 32-bit floats`);
    }
    return tensor.values;
  };
  const networks = {
    parameters: values('parameters'),
    firstMoments: values('first_moments'),
    secondMoments: values('second_moments'),
  };
  return { checkpoint: { ...(JSON.parse(state) as PpoCheckpoint), ...networks }, metadata: others };
}
