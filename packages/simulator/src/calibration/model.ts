import { findNamed, type Named } from './named.ts';

/** What a transformer is made of, as far as the speed of serving depends on it. */
export interface ServedModel extends Named {
  /** The end of a profile's name. */
  readonly id: string;
  /** All parameters. */
  readonly parameters: number;
  /** Those that one token passes through; fewer than all in a mixture of experts. */
  readonly activeParameters: number;
  /** The routed experts of each layer of a mixture; `null` for a dense model. */
  readonly experts: { readonly count: number; readonly perToken: number } | null;
  /** Precision of the published weights. */
  readonly checkpoint: 'FP16' | 'FP8';
  /** Parameters of the token embedding. A separate output layer has as many. */
  readonly embeddingParameters: number;
  readonly layers: number;
  /** Whether each layer normalises queries and keys. */
  readonly qkNorm: boolean;
  readonly queryHeads: number;
  /** Query heads x head size: the width of attention. */
  readonly attentionWidth: number;
  readonly hiddenWidth: number;
  /** KV cache of one token in FP16, bytes. */
  readonly kvBytesPerToken: number;
  /**
   * Longest context: `max_position_embeddings`. Where the models of a name differ, that of the first, or of the
   * instruction-tuned Qwen2.5.
   */
  readonly contextTokens: number;
}

interface ModelConfig {
  readonly id: string;
  readonly name: string;
  readonly aliases: readonly string[];
  /** 10^9. */
  readonly parameters: number;
  /** 10^9. Default: all. */
  readonly activeParameters?: number;
  /** Default: none. */
  readonly experts?: ServedModel['experts'];
  /** Default `FP16`. */
  readonly checkpoint?: 'FP16' | 'FP8';
  readonly vocabulary: number;
  readonly hidden: number;
  readonly layers: number;
  /** Default false. */
  readonly qkNorm?: boolean;
  readonly queryHeads: number;
  readonly kvHeads: number;
  readonly contextTokens: number;
}

/** Size of an attention head, the same in all of these. */
const HEAD_SIZE = 128;

/** From the models' published `config.json`. All have an output layer of their own. */
export const MODELS: readonly ServedModel[] = [
  model({
    id: 'llama-3-8b',
    name: 'Llama-3-8B',
    aliases: [
      'meta-llama/Meta-Llama-3-8B',
      'meta-llama/Meta-Llama-3-8B-Instruct',
      'meta-llama/Llama-3.1-8B',
      'meta-llama/Llama-3.1-8B-Instruct',
    ],
    parameters: 8.03,
    vocabulary: 128_256,
    hidden: 4096,
    layers: 32,
    queryHeads: 32,
    kvHeads: 8,
    contextTokens: 8192,
  }),
  model({
    id: 'llama-3-70b',
    name: 'Llama-3-70B',
    aliases: [
      'meta-llama/Meta-Llama-3-70B',
      'meta-llama/Meta-Llama-3-70B-Instruct',
      'meta-llama/Llama-3.1-70B',
      'meta-llama/Llama-3.1-70B-Instruct',
      'meta-llama/Llama-3.3-70B-Instruct',
    ],
    parameters: 70.55,
    vocabulary: 128_256,
    hidden: 8192,
    layers: 80,
    queryHeads: 64,
    kvHeads: 8,
    contextTokens: 8192,
  }),
  model({
    id: 'llama-2-7b',
    name: 'Llama-2-7B',
    aliases: ['meta-llama/Llama-2-7b-hf', 'meta-llama/Llama-2-7b-chat-hf'],
    parameters: 6.74,
    vocabulary: 32_000,
    hidden: 4096,
    layers: 32,
    queryHeads: 32,
    kvHeads: 32,
    contextTokens: 4096,
  }),
  model({
    id: 'mistral-7b',
    name: 'Mistral-7B',
    aliases: ['mistralai/Mistral-7B-v0.1', 'mistralai/Mistral-7B-Instruct-v0.3'],
    parameters: 7.24,
    vocabulary: 32_000,
    hidden: 4096,
    layers: 32,
    queryHeads: 32,
    kvHeads: 8,
    contextTokens: 32_768,
  }),
  model({
    id: 'mistral-nemo-12b',
    name: 'Mistral-Nemo-12B',
    aliases: ['mistralai/Mistral-Nemo-Instruct-2407'],
    parameters: 12.25,
    vocabulary: 131_072,
    hidden: 5120,
    layers: 40,
    queryHeads: 32,
    kvHeads: 8,
    contextTokens: 131_072,
  }),
  model({
    id: 'qwen2.5-7b',
    name: 'Qwen2.5-7B',
    aliases: ['Qwen/Qwen2.5-7B', 'Qwen/Qwen2.5-7B-Instruct'],
    parameters: 7.62,
    vocabulary: 152_064,
    hidden: 3584,
    layers: 28,
    queryHeads: 28,
    kvHeads: 4,
    contextTokens: 32_768,
  }),
  model({
    id: 'yi-34b',
    name: 'Yi-34B',
    aliases: ['01-ai/Yi-34B'],
    parameters: 34.39,
    vocabulary: 64_000,
    hidden: 7168,
    layers: 60,
    queryHeads: 56,
    kvHeads: 8,
    contextTokens: 4096,
  }),
  model({
    id: 'llama-4-scout',
    name: 'Llama-4-Scout',
    aliases: [
      'meta-llama/Llama-4-Scout-17B-16E-Instruct',
      'RedHatAI/Llama-4-Scout-17B-16E-Instruct-FP8-dynamic',
    ],
    parameters: 109,
    activeParameters: 17,
    experts: { count: 16, perToken: 1 },
    checkpoint: 'FP8',
    vocabulary: 202_048,
    hidden: 5120,
    layers: 48,
    qkNorm: true,
    queryHeads: 40,
    kvHeads: 8,
    contextTokens: 10_485_760,
  }),
  model({
    id: 'llama-2-70b',
    name: 'Llama-2-70B',
    aliases: ['meta-llama/Llama-2-70b-hf', 'meta-llama/Llama-2-70b-chat-hf'],
    parameters: 68.98,
    vocabulary: 32000,
    hidden: 8192,
    layers: 80,
    queryHeads: 64,
    kvHeads: 8,
    contextTokens: 4096,
  }),
  model({
    id: 'codellama-34b',
    name: 'CodeLlama-34B',
    aliases: ['codellama/CodeLlama-34b-hf', 'codellama/CodeLlama-34b-Instruct-hf'],
    parameters: 33.74,
    vocabulary: 32000,
    hidden: 8192,
    layers: 48,
    queryHeads: 64,
    kvHeads: 8,
    contextTokens: 16_384,
  }),
  model({
    id: 'mistral-small-24b',
    name: 'Mistral-Small-24B',
    aliases: ['mistralai/Mistral-Small-24B-Instruct-2501'],
    parameters: 23.57,
    vocabulary: 131_072,
    hidden: 5120,
    layers: 40,
    queryHeads: 32,
    kvHeads: 8,
    contextTokens: 32_768,
  }),
  model({
    id: 'mixtral-8x7b',
    name: 'Mixtral-8x7B',
    aliases: ['mistralai/Mixtral-8x7B-v0.1', 'mistralai/Mixtral-8x7B-Instruct-v0.1'],
    parameters: 46.7,
    activeParameters: 12.88,
    experts: { count: 8, perToken: 2 },
    vocabulary: 32000,
    hidden: 4096,
    layers: 32,
    queryHeads: 32,
    kvHeads: 8,
    contextTokens: 32_768,
  }),
  model({
    id: 'mixtral-8x22b',
    name: 'Mixtral-8x22B',
    aliases: ['mistralai/Mixtral-8x22B-v0.1', 'mistralai/Mixtral-8x22B-Instruct-v0.1'],
    parameters: 140.6,
    activeParameters: 39.15,
    experts: { count: 8, perToken: 2 },
    vocabulary: 32768,
    hidden: 6144,
    layers: 56,
    queryHeads: 48,
    kvHeads: 8,
    contextTokens: 65_536,
  }),
  model({
    id: 'qwen2.5-14b',
    name: 'Qwen2.5-14B',
    aliases: ['Qwen/Qwen2.5-14B', 'Qwen/Qwen2.5-14B-Instruct'],
    parameters: 14.77,
    vocabulary: 152_064,
    hidden: 5120,
    layers: 48,
    queryHeads: 40,
    kvHeads: 8,
    contextTokens: 32_768,
  }),
  model({
    id: 'qwen2.5-32b',
    name: 'Qwen2.5-32B',
    aliases: ['Qwen/Qwen2.5-32B', 'Qwen/Qwen2.5-32B-Instruct'],
    parameters: 32.76,
    vocabulary: 152_064,
    hidden: 5120,
    layers: 64,
    queryHeads: 40,
    kvHeads: 8,
    contextTokens: 32_768,
  }),
  model({
    id: 'qwen2.5-72b',
    name: 'Qwen2.5-72B',
    aliases: ['Qwen/Qwen2.5-72B', 'Qwen/Qwen2.5-72B-Instruct'],
    parameters: 72.71,
    vocabulary: 152_064,
    hidden: 8192,
    layers: 80,
    queryHeads: 64,
    kvHeads: 8,
    contextTokens: 32_768,
  }),
  model({
    id: 'qwen3-8b',
    name: 'Qwen3-8B',
    aliases: ['Qwen/Qwen3-8B'],
    parameters: 8.19,
    vocabulary: 151_936,
    hidden: 4096,
    layers: 36,
    qkNorm: true,
    queryHeads: 32,
    kvHeads: 8,
    contextTokens: 40_960,
  }),
  model({
    id: 'qwen3-14b',
    name: 'Qwen3-14B',
    aliases: ['Qwen/Qwen3-14B'],
    parameters: 14.77,
    vocabulary: 151_936,
    hidden: 5120,
    layers: 40,
    qkNorm: true,
    queryHeads: 40,
    kvHeads: 8,
    contextTokens: 40_960,
  }),
  model({
    id: 'qwen3-32b',
    name: 'Qwen3-32B',
    aliases: ['Qwen/Qwen3-32B'],
    parameters: 32.76,
    vocabulary: 151_936,
    hidden: 5120,
    layers: 64,
    qkNorm: true,
    queryHeads: 64,
    kvHeads: 8,
    contextTokens: 40_960,
  }),
  model({
    id: 'qwen3-30b-a3b',
    name: 'Qwen3-30B-A3B',
    aliases: ['Qwen/Qwen3-30B-A3B'],
    parameters: 30.53,
    activeParameters: 3.34,
    experts: { count: 128, perToken: 8 },
    vocabulary: 151_936,
    hidden: 2048,
    layers: 48,
    qkNorm: true,
    queryHeads: 32,
    kvHeads: 4,
    contextTokens: 40_960,
  }),
];

function model(config: ModelConfig): ServedModel {
  const { id, name, aliases, layers, queryHeads, hidden } = config;
  return {
    id,
    name,
    aliases,
    parameters: config.parameters * 1e9,
    activeParameters: (config.activeParameters ?? config.parameters) * 1e9,
    experts: config.experts ?? null,
    checkpoint: config.checkpoint ?? 'FP16',
    embeddingParameters: config.vocabulary * hidden,
    layers,
    queryHeads,
    attentionWidth: queryHeads * HEAD_SIZE,
    hiddenWidth: hidden,
    qkNorm: config.qkNorm ?? false,
    kvBytesPerToken: 2 * 2 * layers * config.kvHeads * HEAD_SIZE,
    contextTokens: config.contextTokens,
  };
}

/** The model that measurements or people call by this name. @throws {CalibrationError} listing those there are. */
export function findModel(name: string): ServedModel {
  return findNamed(MODELS, name, 'model');
}

/** Parameters that a full batch streams through the memory system: all but the token embedding's table. */
export function streamedParameters({ parameters, embeddingParameters }: ServedModel): number {
  return parameters - embeddingParameters;
}

/** Parameters of all routed experts; 0 for a dense model. */
export function expertParameters({ parameters, activeParameters, experts }: ServedModel): number {
  return experts === null ? 0 : (parameters - activeParameters) / (1 - experts.perToken / experts.count);
}

/** Parameters that every token is multiplied with; the output layer only sees the last token of a sequence. */
export function parametersPerToken({ activeParameters, embeddingParameters }: ServedModel): number {
  return activeParameters - 2 * embeddingParameters;
}

/** Parameters of the layers, which quantization makes smaller; embedding and output layer stay in 16 bit. */
export function layerParameters({ parameters, embeddingParameters }: ServedModel): number {
  return parameters - 2 * embeddingParameters;
}
