import type { WeightPrecision } from '@servegym/simulator';
import { findNamed } from './named.ts';
import { type ServedModel, servedModel } from './served-model.ts';
import type { LayerGroup, Mixture, TransformerShape } from './transformer-shape.ts';

interface Row {
  readonly id: string;
  readonly name: string;
  /** Hugging Face ids. */
  readonly aliases: readonly string[];
  readonly shape: TransformerShape;
  readonly contextTokens: number;
  /** Default `FP16`. */
  readonly checkpoint?: WeightPrecision;
  readonly checkpoints: ServedModel['checkpoints'];
  readonly draft?: string;
  /** Parameters as the model card rounds them, 10^9: shipped profiles were made with these. Default: counted. */
  readonly parameters?: number;
  readonly activeParameters?: number;
}

/** Query and KV heads, and the head size where it is not 128. */
type Heads = readonly [query: number, kv: number, size?: number];

/** Rows of the table below: `[hidden, vocabulary]`, heads, layers, and what is not as in most models. */
function shape(
  [hidden, vocabulary]: readonly [number, number],
  [queryHeads, kvHeads, headSize = 128]: Heads,
  layers: readonly LayerGroup[],
  other: Partial<
    Pick<TransformerShape, 'qkNorm' | 'qkNormAcross' | 'outputGate' | 'tiedEmbeddings' | 'mla'>
  > = {},
): TransformerShape {
  return {
    hidden,
    vocabulary,
    queryHeads,
    kvHeads,
    headSize,
    qkNorm: false,
    tiedEmbeddings: false,
    mla: null,
    layers,
    ...other,
  };
}

function dense(count: number, inter: number, window: number | null = null): LayerGroup {
  return { count, window, feedForward: { inter } };
}

function mixture(
  count: number,
  [experts, perToken, inter, sharedInter = 0]: readonly [
    experts: number,
    perToken: number,
    inter: number,
    shared?: number,
  ],
  window: number | null = null,
): LayerGroup {
  const feedForward: Mixture = { experts, perToken, inter, sharedInter };
  return { count, window, feedForward };
}

/** Three of four layers with a gated delta rule, and experts in all. */
function hybrid(count: number, valueHeads: number, layer: LayerGroup): readonly LayerGroup[] {
  const linear = { keyHeads: 16, valueHeads, keySize: 128, valueSize: 128 };
  return [
    { ...layer, count: (3 * count) / 4, linear },
    { ...layer, count: count / 4 },
  ];
}

const QK_NORM = { qkNorm: true } as const;
const QWEN_LINEAR = { qkNorm: true, outputGate: true } as const;
const QWEN_3_5 = 248_320;
const TIED = { tiedEmbeddings: true } as const;
const LLAMA_3 = 128_256;
const QWEN_2_5 = 152_064;
const QWEN_3 = 151_936;
const GPT_OSS: readonly [number, number] = [2880, 201_088];
const DEEPSEEK_V3 = shape(
  [7168, 129_280],
  [128, 128, 192],
  [dense(3, 18_432), mixture(58, [256, 8, 2048, 2048])],
  { mla: { queryRank: 1536, kvRank: 512, nopeSize: 128, ropeSize: 64, valueSize: 128 } },
);

/** From the models' published `config.json`. */
const ROWS: readonly Row[] = [
  {
    id: 'llama-3-8b',
    name: 'Llama-3-8B',
    aliases: [
      'meta-llama/Meta-Llama-3-8B',
      'meta-llama/Meta-Llama-3-8B-Instruct',
      'meta-llama/Llama-3.1-8B',
      'meta-llama/Llama-3.1-8B-Instruct',
    ],
    parameters: 8.03,
    shape: shape([4096, LLAMA_3], [32, 8], [dense(32, 14_336)]),
    contextTokens: 8192,
    checkpoints: {
      FP16: 'meta-llama/Meta-Llama-3-8B-Instruct',
      FP8: 'RedHatAI/Meta-Llama-3-8B-Instruct-FP8',
      INT8: 'RedHatAI/Meta-Llama-3-8B-Instruct-quantized.w8a8',
      INT4: 'RedHatAI/Meta-Llama-3-8B-Instruct-quantized.w4a16',
    },
    draft: 'yuhuili/EAGLE-LLaMA3-Instruct-8B',
  },
  {
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
    shape: shape([8192, LLAMA_3], [64, 8], [dense(80, 28_672)]),
    contextTokens: 8192,
    checkpoints: {
      FP16: 'meta-llama/Meta-Llama-3-70B-Instruct',
      FP8: 'RedHatAI/Meta-Llama-3-70B-Instruct-FP8',
      INT8: 'RedHatAI/Meta-Llama-3-70B-Instruct-quantized.w8a8',
      INT4: 'casperhansen/llama-3-70b-instruct-awq',
      NVFP4: 'nvidia/Llama-3.3-70B-Instruct-NVFP4',
    },
    draft: 'yuhuili/EAGLE-LLaMA3-Instruct-70B',
  },
  {
    id: 'llama-3.1-405b',
    name: 'Llama-3.1-405B',
    aliases: ['meta-llama/Llama-3.1-405B', 'meta-llama/Llama-3.1-405B-Instruct'],
    shape: shape([16_384, LLAMA_3], [128, 8], [dense(126, 53_248)]),
    contextTokens: 131_072,
    checkpoints: {
      FP16: 'meta-llama/Llama-3.1-405B-Instruct',
      FP8: 'meta-llama/Llama-3.1-405B-Instruct-FP8',
      INT8: 'RedHatAI/Meta-Llama-3.1-405B-Instruct-quantized.w8a8',
      INT4: 'RedHatAI/Meta-Llama-3.1-405B-Instruct-quantized.w4a16',
      NVFP4: 'nvidia/Llama-3.1-405B-Instruct-NVFP4',
    },
  },
  {
    id: 'llama-3.2-1b',
    name: 'Llama-3.2-1B',
    aliases: ['meta-llama/Llama-3.2-1B', 'meta-llama/Llama-3.2-1B-Instruct'],
    shape: shape([2048, LLAMA_3], [32, 8, 64], [dense(16, 8192)], TIED),
    contextTokens: 131_072,
    checkpoints: {
      FP16: 'meta-llama/Llama-3.2-1B-Instruct',
      FP8: 'RedHatAI/Llama-3.2-1B-Instruct-FP8',
      INT8: 'RedHatAI/Llama-3.2-1B-Instruct-quantized.w8a8',
    },
  },
  {
    id: 'llama-3.2-3b',
    name: 'Llama-3.2-3B',
    aliases: ['meta-llama/Llama-3.2-3B', 'meta-llama/Llama-3.2-3B-Instruct'],
    shape: shape([3072, LLAMA_3], [24, 8], [dense(28, 8192)], TIED),
    contextTokens: 131_072,
    checkpoints: {
      FP16: 'meta-llama/Llama-3.2-3B-Instruct',
      FP8: 'RedHatAI/Llama-3.2-3B-Instruct-FP8',
      INT8: 'RedHatAI/Llama-3.2-3B-Instruct-quantized.w8a8',
    },
  },
  {
    id: 'llama-2-7b',
    name: 'Llama-2-7B',
    aliases: ['meta-llama/Llama-2-7b-hf', 'meta-llama/Llama-2-7b-chat-hf'],
    parameters: 6.74,
    shape: shape([4096, 32_000], [32, 32], [dense(32, 11_008)]),
    contextTokens: 4096,
    checkpoints: { FP16: 'meta-llama/Llama-2-7b-chat-hf', INT4: 'TheBloke/Llama-2-7B-Chat-AWQ' },
    draft: 'yuhuili/EAGLE-llama2-chat-7B',
  },
  {
    id: 'llama-2-70b',
    name: 'Llama-2-70B',
    aliases: ['meta-llama/Llama-2-70b-hf', 'meta-llama/Llama-2-70b-chat-hf'],
    parameters: 68.98,
    shape: shape([8192, 32_000], [64, 8], [dense(80, 28_672)]),
    contextTokens: 4096,
    checkpoints: { FP16: 'meta-llama/Llama-2-70b-chat-hf', INT4: 'TheBloke/Llama-2-70B-Chat-AWQ' },
    draft: 'yuhuili/EAGLE-llama2-chat-70B',
  },
  {
    id: 'codellama-34b',
    name: 'CodeLlama-34B',
    aliases: ['codellama/CodeLlama-34b-hf', 'codellama/CodeLlama-34b-Instruct-hf'],
    parameters: 33.74,
    shape: shape([8192, 32_000], [64, 8], [dense(48, 22_016)]),
    contextTokens: 16_384,
    checkpoints: {
      FP16: 'codellama/CodeLlama-34b-Instruct-hf',
      INT4: 'TheBloke/CodeLlama-34B-Instruct-AWQ',
    },
  },
  {
    id: 'llama-4-scout',
    name: 'Llama-4-Scout',
    aliases: [
      'meta-llama/Llama-4-Scout-17B-16E-Instruct',
      'RedHatAI/Llama-4-Scout-17B-16E-Instruct-FP8-dynamic',
    ],
    parameters: 109,
    activeParameters: 17,
    checkpoint: 'FP8',
    shape: shape(
      [5120, 202_048],
      [40, 8],
      [mixture(36, [16, 1, 8192, 8192], 8192), mixture(12, [16, 1, 8192, 8192])],
      QK_NORM,
    ),
    contextTokens: 10_485_760,
    checkpoints: {
      FP16: 'meta-llama/Llama-4-Scout-17B-16E-Instruct',
      FP8: 'RedHatAI/Llama-4-Scout-17B-16E-Instruct-FP8-dynamic',
      INT4: 'RedHatAI/Llama-4-Scout-17B-16E-Instruct-quantized.w4a16',
      NVFP4: 'nvidia/Llama-4-Scout-17B-16E-Instruct-NVFP4',
    },
  },
  {
    id: 'llama-4-maverick',
    name: 'Llama-4-Maverick',
    aliases: [
      'meta-llama/Llama-4-Maverick-17B-128E-Instruct',
      'meta-llama/Llama-4-Maverick-17B-128E-Instruct-FP8',
    ],
    checkpoint: 'FP8',
    shape: shape(
      [5120, 202_048],
      [40, 8],
      [dense(24, 16_384, 8192), mixture(12, [128, 1, 8192, 8192], 8192), mixture(12, [128, 1, 8192, 8192])],
      QK_NORM,
    ),
    contextTokens: 1_048_576,
    checkpoints: {
      FP16: 'meta-llama/Llama-4-Maverick-17B-128E-Instruct',
      FP8: 'meta-llama/Llama-4-Maverick-17B-128E-Instruct-FP8',
      INT4: 'RedHatAI/Llama-4-Maverick-17B-128E-Instruct-quantized.w4a16',
    },
  },
  {
    id: 'mistral-7b',
    name: 'Mistral-7B',
    aliases: ['mistralai/Mistral-7B-v0.1', 'mistralai/Mistral-7B-Instruct-v0.3'],
    parameters: 7.24,
    shape: shape([4096, 32_000], [32, 8], [dense(32, 14_336)]),
    contextTokens: 32_768,
    checkpoints: {
      FP16: 'mistralai/Mistral-7B-Instruct-v0.3',
      FP8: 'RedHatAI/Mistral-7B-Instruct-v0.3-FP8',
      INT8: 'RedHatAI/Mistral-7B-Instruct-v0.3-quantized.w8a8',
      INT4: 'RedHatAI/Mistral-7B-Instruct-v0.3-GPTQ-4bit',
    },
  },
  {
    id: 'mistral-nemo-12b',
    name: 'Mistral-Nemo-12B',
    aliases: ['mistralai/Mistral-Nemo-Instruct-2407'],
    parameters: 12.25,
    shape: shape([5120, 131_072], [32, 8], [dense(40, 14_336)]),
    contextTokens: 131_072,
    checkpoints: {
      FP16: 'mistralai/Mistral-Nemo-Instruct-2407',
      FP8: 'RedHatAI/Mistral-Nemo-Instruct-2407-FP8',
      INT4: 'RedHatAI/Mistral-Nemo-Instruct-2407-quantized.w4a16',
    },
  },
  {
    id: 'mistral-small-24b',
    name: 'Mistral-Small-24B',
    aliases: [
      'mistralai/Mistral-Small-24B-Instruct-2501',
      'mistralai/Mistral-Small-3.1-24B-Instruct-2503',
      'mistralai/Mistral-Small-3.2-24B-Instruct-2506',
      'mistralai/Devstral-Small-2507',
    ],
    parameters: 23.57,
    shape: shape([5120, 131_072], [32, 8], [dense(40, 32_768)]),
    contextTokens: 32_768,
    checkpoints: {
      FP16: 'mistralai/Mistral-Small-24B-Instruct-2501',
      FP8: 'RedHatAI/Mistral-Small-24B-Instruct-2501-FP8-dynamic',
      INT8: 'RedHatAI/Mistral-Small-24B-Instruct-2501-quantized.w8a8',
      INT4: 'RedHatAI/Mistral-Small-24B-Instruct-2501-quantized.w4a16',
    },
  },
  {
    id: 'mistral-large-123b',
    name: 'Mistral-Large-123B',
    aliases: ['mistralai/Mistral-Large-Instruct-2407', 'mistralai/Mistral-Large-Instruct-2411'],
    shape: shape([12_288, 32_768], [96, 8], [dense(88, 28_672)]),
    contextTokens: 131_072,
    checkpoints: {
      FP16: 'mistralai/Mistral-Large-Instruct-2407',
      FP8: 'RedHatAI/Mistral-Large-Instruct-2407-FP8',
    },
  },
  {
    id: 'mixtral-8x7b',
    name: 'Mixtral-8x7B',
    aliases: ['mistralai/Mixtral-8x7B-v0.1', 'mistralai/Mixtral-8x7B-Instruct-v0.1'],
    parameters: 46.7,
    activeParameters: 12.88,
    shape: shape([4096, 32_000], [32, 8], [mixture(32, [8, 2, 14_336])]),
    contextTokens: 32_768,
    checkpoints: {
      FP16: 'mistralai/Mixtral-8x7B-Instruct-v0.1',
      FP8: 'RedHatAI/Mixtral-8x7B-Instruct-v0.1-FP8',
      INT4: 'TheBloke/Mixtral-8x7B-Instruct-v0.1-GPTQ',
    },
    draft: 'yuhuili/EAGLE-mixtral-instruct-8x7B',
  },
  {
    id: 'mixtral-8x22b',
    name: 'Mixtral-8x22B',
    aliases: ['mistralai/Mixtral-8x22B-v0.1', 'mistralai/Mixtral-8x22B-Instruct-v0.1'],
    parameters: 140.6,
    activeParameters: 39.15,
    shape: shape([6144, 32_768], [48, 8], [mixture(56, [8, 2, 16_384])]),
    contextTokens: 65_536,
    checkpoints: {
      FP16: 'mistralai/Mixtral-8x22B-Instruct-v0.1',
      FP8: 'RedHatAI/Mixtral-8x22B-Instruct-v0.1-FP8',
    },
  },
  {
    id: 'yi-34b',
    name: 'Yi-34B',
    aliases: ['01-ai/Yi-34B', '01-ai/Yi-34B-Chat'],
    parameters: 34.39,
    shape: shape([7168, 64_000], [56, 8], [dense(60, 20_480)]),
    contextTokens: 4096,
    checkpoints: { FP16: '01-ai/Yi-34B-Chat', INT4: '01-ai/Yi-34B-Chat-4bits' },
  },
  {
    id: 'qwen2.5-7b',
    name: 'Qwen2.5-7B',
    aliases: ['Qwen/Qwen2.5-7B', 'Qwen/Qwen2.5-7B-Instruct', 'Qwen/Qwen2.5-Coder-7B-Instruct'],
    parameters: 7.62,
    shape: shape([3584, QWEN_2_5], [28, 4], [dense(28, 18_944)]),
    contextTokens: 32_768,
    checkpoints: qwen25('7B'),
  },
  {
    id: 'qwen2.5-14b',
    name: 'Qwen2.5-14B',
    aliases: ['Qwen/Qwen2.5-14B', 'Qwen/Qwen2.5-14B-Instruct', 'Qwen/Qwen2.5-Coder-14B-Instruct'],
    parameters: 14.77,
    shape: shape([5120, QWEN_2_5], [40, 8], [dense(48, 13_824)]),
    contextTokens: 32_768,
    checkpoints: qwen25('14B'),
  },
  {
    id: 'qwen2.5-32b',
    name: 'Qwen2.5-32B',
    aliases: [
      'Qwen/Qwen2.5-32B',
      'Qwen/Qwen2.5-32B-Instruct',
      'Qwen/Qwen2.5-Coder-32B-Instruct',
      'Qwen/QwQ-32B',
    ],
    parameters: 32.76,
    shape: shape([5120, QWEN_2_5], [40, 8], [dense(64, 27_648)]),
    contextTokens: 32_768,
    checkpoints: qwen25('32B'),
  },
  {
    id: 'qwen2.5-72b',
    name: 'Qwen2.5-72B',
    aliases: ['Qwen/Qwen2.5-72B', 'Qwen/Qwen2.5-72B-Instruct'],
    parameters: 72.71,
    shape: shape([8192, QWEN_2_5], [64, 8], [dense(80, 29_568)]),
    contextTokens: 32_768,
    checkpoints: qwen25('72B'),
  },
  {
    id: 'qwen3-0.6b',
    name: 'Qwen3-0.6B',
    aliases: ['Qwen/Qwen3-0.6B'],
    shape: shape([1024, QWEN_3], [16, 8], [dense(28, 3072)], { ...QK_NORM, ...TIED }),
    contextTokens: 40_960,
    checkpoints: { FP16: 'Qwen/Qwen3-0.6B', FP8: 'Qwen/Qwen3-0.6B-FP8' },
  },
  {
    id: 'qwen3-1.7b',
    name: 'Qwen3-1.7B',
    aliases: ['Qwen/Qwen3-1.7B'],
    shape: shape([2048, QWEN_3], [16, 8], [dense(28, 6144)], { ...QK_NORM, ...TIED }),
    contextTokens: 40_960,
    checkpoints: { FP16: 'Qwen/Qwen3-1.7B', FP8: 'Qwen/Qwen3-1.7B-FP8' },
  },
  {
    id: 'qwen3-4b',
    name: 'Qwen3-4B',
    aliases: ['Qwen/Qwen3-4B', 'Qwen/Qwen3-4B-Instruct-2507', 'Qwen/Qwen3-4B-Thinking-2507'],
    shape: shape([2560, QWEN_3], [32, 8], [dense(36, 9728)], { ...QK_NORM, ...TIED }),
    contextTokens: 40_960,
    checkpoints: { FP16: 'Qwen/Qwen3-4B', FP8: 'Qwen/Qwen3-4B-FP8', INT4: 'Qwen/Qwen3-4B-AWQ' },
  },
  {
    id: 'qwen3-8b',
    name: 'Qwen3-8B',
    aliases: ['Qwen/Qwen3-8B'],
    parameters: 8.19,
    shape: shape([4096, QWEN_3], [32, 8], [dense(36, 12_288)], QK_NORM),
    contextTokens: 40_960,
    checkpoints: { FP16: 'Qwen/Qwen3-8B', FP8: 'Qwen/Qwen3-8B-FP8', INT4: 'Qwen/Qwen3-8B-AWQ' },
    draft: 'AngelSlim/Qwen3-8B_eagle3',
  },
  {
    id: 'qwen3-14b',
    name: 'Qwen3-14B',
    aliases: ['Qwen/Qwen3-14B'],
    parameters: 14.77,
    shape: shape([5120, QWEN_3], [40, 8], [dense(40, 17_408)], QK_NORM),
    contextTokens: 40_960,
    checkpoints: { FP16: 'Qwen/Qwen3-14B', FP8: 'Qwen/Qwen3-14B-FP8', INT4: 'Qwen/Qwen3-14B-AWQ' },
  },
  {
    id: 'qwen3-32b',
    name: 'Qwen3-32B',
    aliases: ['Qwen/Qwen3-32B'],
    parameters: 32.76,
    shape: shape([5120, QWEN_3], [64, 8], [dense(64, 25_600)], QK_NORM),
    contextTokens: 40_960,
    checkpoints: { FP16: 'Qwen/Qwen3-32B', FP8: 'Qwen/Qwen3-32B-FP8', INT4: 'Qwen/Qwen3-32B-AWQ' },
    draft: 'AngelSlim/Qwen3-32B_eagle3',
  },
  {
    id: 'qwen3-30b-a3b',
    name: 'Qwen3-30B-A3B',
    aliases: ['Qwen/Qwen3-30B-A3B', 'Qwen/Qwen3-30B-A3B-Instruct-2507', 'Qwen/Qwen3-Coder-30B-A3B-Instruct'],
    parameters: 30.53,
    activeParameters: 3.34,
    shape: shape([2048, QWEN_3], [32, 4], [mixture(48, [128, 8, 768])], QK_NORM),
    contextTokens: 40_960,
    checkpoints: {
      FP16: 'Qwen/Qwen3-30B-A3B',
      FP8: 'Qwen/Qwen3-30B-A3B-FP8',
      INT4: 'Qwen/Qwen3-30B-A3B-GPTQ-Int4',
      NVFP4: 'nvidia/Qwen3-30B-A3B-NVFP4',
    },
  },
  {
    id: 'qwen3-235b-a22b',
    name: 'Qwen3-235B-A22B',
    aliases: ['Qwen/Qwen3-235B-A22B', 'Qwen/Qwen3-235B-A22B-Instruct-2507'],
    shape: shape([4096, QWEN_3], [64, 4], [mixture(94, [128, 8, 1536])], QK_NORM),
    contextTokens: 40_960,
    checkpoints: {
      FP16: 'Qwen/Qwen3-235B-A22B',
      FP8: 'Qwen/Qwen3-235B-A22B-FP8',
      INT4: 'Qwen/Qwen3-235B-A22B-GPTQ-Int4',
      NVFP4: 'nvidia/Qwen3-235B-A22B-NVFP4',
    },
  },
  {
    id: 'qwen3-coder-480b-a35b',
    name: 'Qwen3-Coder-480B-A35B',
    aliases: ['Qwen/Qwen3-Coder-480B-A35B-Instruct'],
    shape: shape([6144, QWEN_3], [96, 8], [mixture(62, [160, 8, 2560])], QK_NORM),
    contextTokens: 262_144,
    checkpoints: {
      FP16: 'Qwen/Qwen3-Coder-480B-A35B-Instruct',
      FP8: 'Qwen/Qwen3-Coder-480B-A35B-Instruct-FP8',
    },
  },
  {
    id: 'gpt-oss-20b',
    name: 'gpt-oss-20b',
    aliases: ['openai/gpt-oss-20b'],
    checkpoint: 'MXFP4',
    shape: shape(GPT_OSS, [64, 8, 64], [mixture(12, [32, 4, 2880], 128), mixture(12, [32, 4, 2880])]),
    contextTokens: 131_072,
    checkpoints: { MXFP4: 'openai/gpt-oss-20b' },
  },
  {
    id: 'gpt-oss-120b',
    name: 'gpt-oss-120b',
    aliases: ['openai/gpt-oss-120b'],
    checkpoint: 'MXFP4',
    shape: shape(GPT_OSS, [64, 8, 64], [mixture(18, [128, 4, 2880], 128), mixture(18, [128, 4, 2880])]),
    contextTokens: 131_072,
    checkpoints: { MXFP4: 'openai/gpt-oss-120b' },
    draft: 'nvidia/gpt-oss-120b-Eagle3',
  },
  {
    id: 'deepseek-v3',
    name: 'DeepSeek-V3',
    aliases: ['deepseek-ai/DeepSeek-V3', 'deepseek-ai/DeepSeek-V3-0324', 'deepseek-ai/DeepSeek-V3.1'],
    checkpoint: 'FP8',
    shape: DEEPSEEK_V3,
    contextTokens: 163_840,
    checkpoints: { FP8: 'deepseek-ai/DeepSeek-V3.1', NVFP4: 'nvidia/DeepSeek-V3.1-NVFP4' },
  },
  {
    id: 'deepseek-r1',
    name: 'DeepSeek-R1',
    aliases: ['deepseek-ai/DeepSeek-R1', 'deepseek-ai/DeepSeek-R1-0528'],
    checkpoint: 'FP8',
    shape: DEEPSEEK_V3,
    contextTokens: 163_840,
    checkpoints: { FP8: 'deepseek-ai/DeepSeek-R1-0528', NVFP4: 'nvidia/DeepSeek-R1-0528-NVFP4' },
  },
  {
    id: 'glm-4.5-air',
    name: 'GLM-4.5-Air',
    aliases: ['zai-org/GLM-4.5-Air'],
    shape: shape([4096, 151_552], [96, 8], [dense(1, 10_944), mixture(45, [128, 8, 1408, 1408])]),
    contextTokens: 131_072,
    checkpoints: { FP16: 'zai-org/GLM-4.5-Air', FP8: 'zai-org/GLM-4.5-Air-FP8' },
  },
  {
    id: 'glm-4.5',
    name: 'GLM-4.5',
    aliases: ['zai-org/GLM-4.5', 'zai-org/GLM-4.6'],
    shape: shape([5120, 151_552], [96, 8], [dense(3, 12_288), mixture(89, [160, 8, 1536, 1536])], QK_NORM),
    contextTokens: 131_072,
    checkpoints: { FP16: 'zai-org/GLM-4.5', FP8: 'zai-org/GLM-4.5-FP8' },
  },
  {
    id: 'qwen3.5-397b-a17b',
    name: 'Qwen3.5-397B-A17B',
    aliases: ['Qwen/Qwen3.5-397B-A17B'],
    shape: shape(
      [4096, QWEN_3_5],
      [32, 2, 256],
      hybrid(60, 64, mixture(60, [512, 10, 1024, 1024])),
      QWEN_LINEAR,
    ),
    contextTokens: 262_144,
    checkpoints: {
      FP16: 'Qwen/Qwen3.5-397B-A17B',
      FP8: 'Qwen/Qwen3.5-397B-A17B-FP8',
      NVFP4: 'nvidia/Qwen3.5-397B-A17B-NVFP4',
    },
  },
  {
    id: 'qwen3.5-122b-a10b',
    name: 'Qwen3.5-122B-A10B',
    aliases: ['Qwen/Qwen3.5-122B-A10B'],
    shape: shape(
      [3072, QWEN_3_5],
      [32, 2, 256],
      hybrid(48, 64, mixture(48, [256, 8, 1024, 1024])),
      QWEN_LINEAR,
    ),
    contextTokens: 262_144,
    checkpoints: { FP16: 'Qwen/Qwen3.5-122B-A10B', FP8: 'Qwen/Qwen3.5-122B-A10B-FP8' },
  },
  {
    id: 'qwen3.5-35b-a3b',
    name: 'Qwen3.5-35B-A3B',
    aliases: ['Qwen/Qwen3.5-35B-A3B'],
    shape: shape(
      [2048, QWEN_3_5],
      [16, 2, 256],
      hybrid(40, 32, mixture(40, [256, 8, 512, 512])),
      QWEN_LINEAR,
    ),
    contextTokens: 262_144,
    checkpoints: { FP16: 'Qwen/Qwen3.5-35B-A3B', FP8: 'Qwen/Qwen3.5-35B-A3B-FP8' },
  },
  {
    id: 'qwen3.5-27b',
    name: 'Qwen3.5-27B',
    aliases: ['Qwen/Qwen3.5-27B'],
    shape: shape([5120, QWEN_3_5], [24, 4, 256], hybrid(64, 48, dense(64, 17_408)), QWEN_LINEAR),
    contextTokens: 262_144,
    checkpoints: { FP16: 'Qwen/Qwen3.5-27B', FP8: 'Qwen/Qwen3.5-27B-FP8' },
  },
  {
    id: 'qwen3-next-80b-a3b',
    name: 'Qwen3-Next-80B-A3B',
    aliases: ['Qwen/Qwen3-Next-80B-A3B-Instruct', 'Qwen/Qwen3-Next-80B-A3B-Thinking'],
    shape: shape([2048, QWEN_3], [16, 2, 256], hybrid(48, 32, mixture(48, [512, 10, 512, 512])), QWEN_LINEAR),
    contextTokens: 262_144,
    checkpoints: {
      FP16: 'Qwen/Qwen3-Next-80B-A3B-Instruct',
      FP8: 'Qwen/Qwen3-Next-80B-A3B-Instruct-FP8',
    },
  },
  {
    id: 'glm-5',
    name: 'GLM-5',
    aliases: ['zai-org/GLM-5', 'zhipuai/GLM-5'],
    shape: shape([6144, 154_880], [64, 64, 256], [dense(3, 12_288), mixture(75, [256, 8, 2048, 2048])], {
      mla: {
        ...{ queryRank: 2048, kvRank: 512, nopeSize: 192, ropeSize: 64, valueSize: 256 },
        indexer: { heads: 32, size: 128 },
      },
    }),
    contextTokens: 202_752,
    checkpoints: { FP16: 'zai-org/GLM-5', FP8: 'zai-org/GLM-5-FP8', NVFP4: 'nvidia/GLM-5-NVFP4' },
  },
  {
    id: 'deepseek-v3.2',
    name: 'DeepSeek-V3.2',
    aliases: ['deepseek-ai/DeepSeek-V3.2'],
    checkpoint: 'FP8',
    shape: { ...DEEPSEEK_V3, mla: { ...DEEPSEEK_V3.mla!, indexer: { heads: 64, size: 128 } } },
    contextTokens: 163_840,
    checkpoints: { FP8: 'deepseek-ai/DeepSeek-V3.2', NVFP4: 'nvidia/DeepSeek-V3.2-NVFP4' },
  },
  {
    id: 'minimax-m2.5',
    name: 'MiniMax-M2.5',
    aliases: ['MiniMaxAI/MiniMax-M2.5', 'MiniMaxAI/MiniMax-M2', 'MiniMaxAI/MiniMax-M2.1'],
    checkpoint: 'FP8',
    shape: shape([3072, 200_064], [48, 8], [mixture(62, [256, 8, 1536])], {
      ...QK_NORM,
      qkNormAcross: true,
    }),
    contextTokens: 196_608,
    checkpoints: { FP8: 'MiniMaxAI/MiniMax-M2.5', NVFP4: 'nvidia/MiniMax-M2.5-NVFP4' },
  },
  {
    id: 'gemma-2-9b',
    name: 'Gemma-2-9B',
    aliases: ['google/gemma-2-9b', 'google/gemma-2-9b-it'],
    shape: shape([3584, 256_000], [16, 8, 256], [dense(21, 14_336, 4096), dense(21, 14_336)], TIED),
    contextTokens: 8192,
    checkpoints: { FP16: 'google/gemma-2-9b-it', FP8: 'RedHatAI/gemma-2-9b-it-FP8' },
  },
  {
    id: 'gemma-2-27b',
    name: 'Gemma-2-27B',
    aliases: ['google/gemma-2-27b', 'google/gemma-2-27b-it'],
    shape: shape([4608, 256_000], [32, 16], [dense(23, 36_864, 4096), dense(23, 36_864)], TIED),
    contextTokens: 8192,
    checkpoints: { FP16: 'google/gemma-2-27b-it', FP8: 'Infermatic/gemma-2-27b-it-FP8-Dynamic' },
  },
  {
    id: 'gemma-3-4b',
    name: 'Gemma-3-4B',
    aliases: ['google/gemma-3-4b-pt', 'google/gemma-3-4b-it'],
    shape: shape([2560, 262_208], [8, 4, 256], [dense(29, 10_240, 1024), dense(5, 10_240)], {
      ...QK_NORM,
      ...TIED,
    }),
    contextTokens: 131_072,
    checkpoints: gemma3('4b'),
  },
  {
    id: 'gemma-3-12b',
    name: 'Gemma-3-12B',
    aliases: ['google/gemma-3-12b-pt', 'google/gemma-3-12b-it'],
    shape: shape([3840, 262_208], [16, 8, 256], [dense(40, 15_360, 1024), dense(8, 15_360)], {
      ...QK_NORM,
      ...TIED,
    }),
    contextTokens: 131_072,
    checkpoints: gemma3('12b'),
  },
  {
    id: 'gemma-3-27b',
    name: 'Gemma-3-27B',
    aliases: ['google/gemma-3-27b-pt', 'google/gemma-3-27b-it'],
    shape: shape([5376, 262_208], [32, 16], [dense(52, 21_504, 1024), dense(10, 21_504)], {
      ...QK_NORM,
      ...TIED,
    }),
    contextTokens: 131_072,
    checkpoints: gemma3('27b'),
  },
  {
    id: 'phi-3-mini',
    name: 'Phi-3-mini',
    aliases: ['microsoft/Phi-3-mini-4k-instruct'],
    shape: shape([3072, 32_064], [32, 32, 96], [dense(32, 8192, 2047)]),
    contextTokens: 4096,
    checkpoints: { FP16: 'microsoft/Phi-3-mini-4k-instruct' },
  },
  {
    id: 'phi-4-mini',
    name: 'Phi-4-mini',
    aliases: ['microsoft/Phi-4-mini-instruct'],
    shape: shape([3072, 200_064], [24, 8], [dense(32, 8192)], TIED),
    contextTokens: 131_072,
    checkpoints: { FP16: 'microsoft/Phi-4-mini-instruct' },
  },
  {
    id: 'phi-4',
    name: 'Phi-4',
    aliases: ['microsoft/phi-4'],
    shape: shape([5120, 100_352], [40, 10], [dense(40, 17_920)]),
    contextTokens: 16_384,
    checkpoints: {
      FP16: 'microsoft/phi-4',
      FP8: 'RedHatAI/phi-4-FP8-dynamic',
      INT8: 'RedHatAI/phi-4-quantized.w8a8',
      INT4: 'RedHatAI/phi-4-quantized.w4a16',
    },
  },
];

function qwen25(size: string): ServedModel['checkpoints'] {
  return {
    FP16: `Qwen/Qwen2.5-${size}-Instruct`,
    FP8: `RedHatAI/Qwen2.5-${size}-Instruct-FP8-dynamic`,
    INT8: `RedHatAI/Qwen2.5-${size}-Instruct-quantized.w8a8`,
    INT4: `Qwen/Qwen2.5-${size}-Instruct-AWQ`,
  };
}

function gemma3(size: string): ServedModel['checkpoints'] {
  return {
    FP16: `google/gemma-3-${size}-it`,
    FP8: `RedHatAI/gemma-3-${size}-it-FP8-dynamic`,
    INT8: `RedHatAI/gemma-3-${size}-it-quantized.w8a8`,
    INT4: `RedHatAI/gemma-3-${size}-it-quantized.w4a16`,
  };
}

/** Models known by name. */
export const MODELS: readonly ServedModel[] = ROWS.map(
  ({ checkpoint = 'FP16', parameters, activeParameters, ...row }) =>
    servedModel({
      ...row,
      checkpoint,
      ...(parameters !== undefined && { parameters: parameters * 1e9 }),
      ...(activeParameters !== undefined && { activeParameters: activeParameters * 1e9 }),
    }),
);

/** The model that measurements or people call by this name. @throws {CalibrationError} listing those there are. */
export function findModel(name: string): ServedModel {
  return findNamed(MODELS, name, 'model');
}
