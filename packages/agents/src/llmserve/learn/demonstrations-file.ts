import { AgentError } from '../../error-catalogue.ts';
import { decodeSafetensors, encodeSafetensors, type Tensor } from '../../formats/safetensors.ts';
import type { FloatArray } from '../../learning/kernels.ts';
import type { DemonstratedEpisode } from './demonstrate.ts';

const VERSION = '1';

/** Writes episodes of one task as safetensors, a row of each tensor for each. `metadata` is kept beside them. */
export function encodeDemonstrations(
  episodes: readonly DemonstratedEpisode[],
  metadata: Readonly<Record<string, string>>,
): Uint8Array {
  const tensor = (valuesOf: (episode: DemonstratedEpisode) => Float32Array | Int32Array): Tensor => {
    const values = Float32Array.from(episodes.flatMap((episode) => [...valuesOf(episode)]));
    return { shape: [episodes.length, values.length / episodes.length], values };
  };
  return encodeSafetensors({
    tensors: {
      observations: tensor(({ observations }) => observations),
      bins_in_force: tensor(({ binsInForce }) => binsInForce),
      actions: tensor(({ actions }) => actions),
      returns: { shape: [episodes.length, 1], values: Float64Array.from(episodes, (shown) => shown.return) },
    },
    metadata: { ...metadata, demonstrations: VERSION },
  });
}

/** Reads what `encodeDemonstrations` wrote; `null` for a file of something else. @throws AgentError `TENSOR_FILE` */
export function decodeDemonstrations(file: Uint8Array): {
  episodes: DemonstratedEpisode[];
  metadata: Readonly<Record<string, string>>;
} | null {
  const { tensors, metadata } = decodeSafetensors(file);
  const { demonstrations, ...others } = metadata;
  if (demonstrations === undefined) return null;
  if (demonstrations !== VERSION) {
    throw new AgentError('TENSOR_FILE', {
      problem: `Expected demonstrations of version ${VERSION}, got version ${demonstrations}`,
    });
  }
  const count = tensors.returns?.shape[0] ?? 0;
  const rows = (name: string) => rowsOf(tensors[name], name, count);
  const [observations, binsInForce, actions] = [rows('observations'), rows('bins_in_force'), rows('actions')];
  const episodes = rows('returns').map(([earned], e) => ({
    observations: Float32Array.from(observations[e]),
    binsInForce: Int32Array.from(binsInForce[e]),
    actions: Int32Array.from(actions[e]),
    return: earned!,
  }));
  return { episodes, metadata: others };
}

function rowsOf(tensor: Tensor | undefined, name: string, count: number): FloatArray[] {
  if (tensor?.shape.length !== 2 || tensor.shape[0] !== count) {
    throw new AgentError('TENSOR_FILE', {
      problem: `Expected a tensor \`${name}\` of ${count} rows, got ${tensor ? `one of shape ${tensor.shape.join(' x ')}` : 'none'}`,
    });
  }
  const width = tensor.shape[1];
  return Array.from({ length: count }, (_, row) => tensor.values.subarray(row * width, (row + 1) * width));
}
