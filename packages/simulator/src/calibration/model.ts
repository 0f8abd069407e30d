import { findNamed, type Named } from './named.ts';

/** What a dense transformer is made of, as far as the speed of serving depends on it. */
export interface ServedModel extends Named {
  /** The end of a profile's name. */
  readonly id: string;
  /** All parameters. */
  readonly parameters: number;
  /** Parameters of the token embedding. A separate output layer has as many; tied ones count once. */
  readonly embeddingParameters: number;
  readonly tiedEmbeddings: boolean;
  readonly layers: number;
  /** Query heads x head size: the width of attention. */
  readonly attentionWidth: number;
  /** KV cache of one token in FP16, bytes. */
  readonly kvBytesPerToken: number;
}

/** From the models' published `config.json`. */
export const MODELS: readonly ServedModel[] = [
  {
    id: 'llama-3-8b',
    name: 'Llama-3-8B',
    aliases: ['meta-llama/Meta-Llama-3-8B', 'meta-llama/Llama-3.1-8B', 'meta-llama/Llama-3.1-8B-Instruct'],
    parameters: 8.03e9,
    embeddingParameters: 128_256 * 4096,
    tiedEmbeddings: false,
    layers: 32,
    attentionWidth: 4096,
    kvBytesPerToken: 131_072,
  },
];

/** Parameters that every iteration streams through the memory system: all but the token embedding's table. */
export function streamedParameters(model: ServedModel): number {
  return model.tiedEmbeddings ? model.parameters : model.parameters - model.embeddingParameters;
}

/** Parameters that every token is multiplied with; the output layer only sees the last token of a sequence. */
export function parametersPerToken(model: ServedModel): number {
  return streamedParameters(model) - model.embeddingParameters;
}

/** The model that measurements or people call by this name. @throws {CalibrationError} listing those there are. */
export function findModel(name: string): ServedModel {
  return findNamed(MODELS, name, 'model');
}
