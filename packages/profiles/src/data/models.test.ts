import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { findModel, MODELS, modelFromConfig } from './model-config.ts';
import rows from './models.json' with { type: 'json' };
import { kvOn } from './served-model.ts';
import {
  countParameters,
  type FeedForward,
  kvBytesOfSequence,
  type LayerGroup,
  loraGiB,
  type TransformerShape,
} from './transformer-shape.ts';

const KIB = 1024;

/** Parameters of the published safetensors files (their metadata on Hugging Face) or, with one digit less, model cards. */
const PUBLISHED_PARAMETERS: Readonly<Record<string, number>> = {
  'llama-3-8b': 8_030_261_248,
  'llama-3-70b': 70_553_706_496,
  'llama-3.1-405b': 405_853_388_800,
  'llama-3.2-1b': 1_235_814_400,
  'llama-3.2-3b': 3_212_749_824,
  'llama-2-7b': 6_738_417_664,
  'mistral-7b': 7_241_732_096,
  'mistral-nemo-12b': 12_247_782_400,
  'mistral-small-24b': 23_572_403_200,
  'mistral-large-123b': 122_610_069_504,
  'mixtral-8x7b': 46_702_792_704,
  'mixtral-8x22b': 140_630_071_296,
  'yi-34b': 34_388_917_248,
  'qwen2.5-7b': 7_615_616_512,
  'qwen2.5-14b': 14_770_033_664,
  'qwen2.5-32b': 32_763_876_352,
  'qwen2.5-72b': 72_706_203_648,
  'qwen3-0.6b': 596_049_920,
  'qwen3-1.7b': 1_720_574_976,
  'qwen3-4b': 4_022_468_096,
  'qwen3-8b': 8_190_735_360,
  'qwen3-14b': 14_768_307_200,
  'qwen3-32b': 32_762_123_264,
  'qwen3-30b-a3b': 30_532_122_624,
  'qwen3-235b-a22b': 235_093_634_560,
  'qwen3-coder-480b-a35b': 480_154_875_392,
  'gpt-oss-20b': 20_914_757_184,
  'gpt-oss-120b': 116_829_156_672,
  'deepseek-r1': 671_026_419_200,
  'gemma-2-9b': 9_241_705_984,
  'gemma-2-27b': 27_227_128_320,
  'phi-3-mini': 3_821_079_552,
  'phi-4-mini': 3_836_021_760,
  'phi-4': 14_659_507_200,
};

/** Parameters that a token passes through, 10^9, and the digits that the model card rounds to. */
const PUBLISHED_ACTIVE: readonly (readonly [id: string, billions: number, within: number])[] = [
  ['mixtral-8x7b', 12.9, 0.05],
  ['qwen3-30b-a3b', 3.3, 0.06],
  ['qwen3-235b-a22b', 22, 0.5],
  ['qwen3-coder-480b-a35b', 35, 0.5],
  // The cards of gpt-oss count one of the two tables of 0.58.
  ['gpt-oss-20b', 3.6 + 0.58, 0.05],
  ['gpt-oss-120b', 5.1 + 0.58, 0.05],
  ['deepseek-r1', 37, 0.8],
  ['glm-4.5', 32, 2],
  ['glm-4.5-air', 12, 1.5],
  // That of MiniMax counts neither table of 0.61.
  ['minimax-m2.5', 10 + 1.23, 0.5],
  ['qwen3.5-397b-a17b', 17, 0.5],
  ['qwen3.5-122b-a10b', 10, 0.5],
  ['qwen3.5-35b-a3b', 3, 0.6],
  // The card leaves out both tables of 0.31.
  ['qwen3-next-80b-a3b', 3 + 0.62, 0.5],
  ['glm-5', 40, 2],
];

const QWEN_3_MOE = {
  architectures: ['Qwen3MoeForCausalLM'],
  decoder_sparse_step: 1,
  head_dim: 128,
  hidden_size: 2048,
  intermediate_size: 6144,
  max_position_embeddings: 40_960,
  max_window_layers: 48,
  mlp_only_layers: [],
  model_type: 'qwen3_moe',
  moe_intermediate_size: 768,
  num_attention_heads: 32,
  num_experts: 128,
  num_experts_per_tok: 8,
  num_hidden_layers: 48,
  num_key_value_heads: 4,
  sliding_window: null,
  tie_word_embeddings: false,
  use_sliding_window: false,
  vocab_size: 151_936,
};

/** Fields of published configs that matter, by the known model that they must give. */
const CONFIGS: readonly (readonly [id: string, config: object])[] = [
  [
    'llama-3.2-1b',
    {
      model_type: 'llama',
      head_dim: 64,
      hidden_size: 2048,
      intermediate_size: 8192,
      max_position_embeddings: 131_072,
      num_attention_heads: 32,
      num_hidden_layers: 16,
      num_key_value_heads: 8,
      tie_word_embeddings: true,
      vocab_size: 128_256,
    },
  ],
  [
    'llama-4-maverick',
    {
      model_type: 'llama4',
      text_config: {
        model_type: 'llama4_text',
        attention_chunk_size: 8192,
        head_dim: 128,
        hidden_size: 5120,
        interleave_moe_layer_step: 2,
        intermediate_size: 8192,
        intermediate_size_mlp: 16_384,
        max_position_embeddings: 1_048_576,
        num_attention_heads: 40,
        num_experts_per_tok: 1,
        num_hidden_layers: 48,
        num_key_value_heads: 8,
        num_local_experts: 128,
        use_qk_norm: true,
        vocab_size: 202_048,
      },
      vision_config: { hidden_size: 1408 },
    },
  ],
  [
    'mixtral-8x7b',
    {
      model_type: 'mixtral',
      hidden_size: 4096,
      intermediate_size: 14_336,
      max_position_embeddings: 32_768,
      num_attention_heads: 32,
      num_experts_per_tok: 2,
      num_hidden_layers: 32,
      num_key_value_heads: 8,
      num_local_experts: 8,
      sliding_window: null,
      vocab_size: 32_000,
    },
  ],
  ['qwen3-30b-a3b', QWEN_3_MOE],
  [
    'qwen2.5-7b',
    {
      model_type: 'qwen2',
      hidden_size: 3584,
      intermediate_size: 18_944,
      max_position_embeddings: 32_768,
      max_window_layers: 28,
      num_attention_heads: 28,
      num_hidden_layers: 28,
      num_key_value_heads: 4,
      sliding_window: 131_072,
      use_sliding_window: false,
      vocab_size: 152_064,
    },
  ],
  [
    'gpt-oss-20b',
    {
      model_type: 'gpt_oss',
      head_dim: 64,
      hidden_size: 2880,
      intermediate_size: 2880,
      layer_types: Array.from({ length: 24 }, (_, i) =>
        i % 2 === 0 ? 'sliding_attention' : 'full_attention',
      ),
      max_position_embeddings: 131_072,
      num_attention_heads: 64,
      num_experts_per_tok: 4,
      num_hidden_layers: 24,
      num_key_value_heads: 8,
      num_local_experts: 32,
      quantization_config: { quant_method: 'mxfp4', modules_to_not_convert: ['lm_head'] },
      sliding_window: 128,
      vocab_size: 201_088,
    },
  ],
  [
    'deepseek-r1',
    {
      model_type: 'deepseek_v3',
      first_k_dense_replace: 3,
      hidden_size: 7168,
      intermediate_size: 18_432,
      kv_lora_rank: 512,
      max_position_embeddings: 163_840,
      moe_intermediate_size: 2048,
      moe_layer_freq: 1,
      n_routed_experts: 256,
      n_shared_experts: 1,
      num_attention_heads: 128,
      num_experts_per_tok: 8,
      num_hidden_layers: 61,
      num_key_value_heads: 128,
      num_nextn_predict_layers: 1,
      q_lora_rank: 1536,
      qk_nope_head_dim: 128,
      qk_rope_head_dim: 64,
      quantization_config: { quant_method: 'fp8', fmt: 'e4m3' },
      v_head_dim: 128,
      vocab_size: 129_280,
    },
  ],
  [
    'glm-4.5-air',
    {
      model_type: 'glm4_moe',
      first_k_dense_replace: 1,
      head_dim: 128,
      hidden_size: 4096,
      intermediate_size: 10_944,
      max_position_embeddings: 131_072,
      moe_intermediate_size: 1408,
      n_routed_experts: 128,
      n_shared_experts: 1,
      num_attention_heads: 96,
      num_experts_per_tok: 8,
      num_hidden_layers: 46,
      num_key_value_heads: 8,
      num_nextn_predict_layers: 1,
      use_qk_norm: false,
      vocab_size: 151_552,
    },
  ],
  [
    'minimax-m2.5',
    {
      model_type: 'minimax_m2',
      head_dim: 128,
      hidden_size: 3072,
      intermediate_size: 1536,
      max_position_embeddings: 196_608,
      num_attention_heads: 48,
      num_experts_per_tok: 8,
      num_hidden_layers: 62,
      num_key_value_heads: 8,
      num_local_experts: 256,
      num_mtp_modules: 3,
      quantization_config: { quant_method: 'fp8', weight_block_size: [128, 128] },
      shared_intermediate_size: 0,
      use_qk_norm: true,
      vocab_size: 200_064,
    },
  ],
  [
    'qwen3.5-397b-a17b',
    {
      model_type: 'qwen3_5_moe',
      tie_word_embeddings: false,
      text_config: {
        model_type: 'qwen3_5_moe_text',
        attn_output_gate: true,
        full_attention_interval: 4,
        head_dim: 256,
        hidden_size: 4096,
        layer_types: Array.from({ length: 60 }, (_, i) =>
          i % 4 === 3 ? 'full_attention' : 'linear_attention',
        ),
        linear_key_head_dim: 128,
        linear_num_key_heads: 16,
        linear_num_value_heads: 64,
        linear_value_head_dim: 128,
        max_position_embeddings: 262_144,
        moe_intermediate_size: 1024,
        num_attention_heads: 32,
        num_experts: 512,
        num_experts_per_tok: 10,
        num_hidden_layers: 60,
        num_key_value_heads: 2,
        shared_expert_intermediate_size: 1024,
        vocab_size: 248_320,
      },
    },
  ],
  [
    // Published without the kind of each layer.
    'qwen3-next-80b-a3b',
    {
      model_type: 'qwen3_next',
      full_attention_interval: 4,
      head_dim: 256,
      hidden_size: 2048,
      intermediate_size: 5120,
      linear_key_head_dim: 128,
      linear_num_key_heads: 16,
      linear_num_value_heads: 32,
      linear_value_head_dim: 128,
      max_position_embeddings: 262_144,
      moe_intermediate_size: 512,
      num_attention_heads: 16,
      num_experts: 512,
      num_experts_per_tok: 10,
      num_hidden_layers: 48,
      num_key_value_heads: 2,
      shared_expert_intermediate_size: 512,
      vocab_size: 151_936,
    },
  ],
  [
    'glm-5',
    {
      model_type: 'glm_moe_dsa',
      first_k_dense_replace: 3,
      head_dim: 64,
      hidden_size: 6144,
      index_head_dim: 128,
      index_n_heads: 32,
      index_topk: 2048,
      intermediate_size: 12_288,
      kv_lora_rank: 512,
      max_position_embeddings: 202_752,
      moe_intermediate_size: 2048,
      n_routed_experts: 256,
      n_shared_experts: 1,
      num_attention_heads: 64,
      num_experts_per_tok: 8,
      num_hidden_layers: 78,
      num_key_value_heads: 64,
      q_lora_rank: 2048,
      qk_nope_head_dim: 192,
      qk_rope_head_dim: 64,
      v_head_dim: 256,
      vocab_size: 154_880,
    },
  ],
  [
    'gemma-2-9b',
    {
      model_type: 'gemma2',
      head_dim: 256,
      hidden_size: 3584,
      intermediate_size: 14_336,
      max_position_embeddings: 8192,
      num_attention_heads: 16,
      num_hidden_layers: 42,
      num_key_value_heads: 8,
      sliding_window: 4096,
      vocab_size: 256_000,
    },
  ],
  [
    // As published: heads, head size and vocabulary are the defaults of the class.
    'gemma-3-4b',
    {
      model_type: 'gemma3',
      text_config: {
        model_type: 'gemma3_text',
        hidden_size: 2560,
        intermediate_size: 10_240,
        num_hidden_layers: 34,
        sliding_window: 1024,
      },
    },
  ],
  [
    'phi-3-mini',
    {
      model_type: 'phi3',
      hidden_size: 3072,
      intermediate_size: 8192,
      max_position_embeddings: 4096,
      num_attention_heads: 32,
      num_hidden_layers: 32,
      num_key_value_heads: 32,
      sliding_window: 2047,
      vocab_size: 32_064,
    },
  ],
];

function read(config: object, name = 'org/My-Model_1.5B') {
  return modelFromConfig(JSON.stringify(config), name, 'config.json');
}

describe('the parameters of a known model', () => {
  for (const [id, published] of Object.entries(PUBLISHED_PARAMETERS)) {
    it(`are those published of ${id}`, () => {
      const { total } = countParameters(findModel(id).shape);
      assert.ok(Math.abs(total / published - 1) < 5e-4, `${total} against ${published}`);
    });
  }

  for (const [id, billions, within] of PUBLISHED_ACTIVE) {
    it(`that a token passes through are those published of ${id}`, () => {
      const { active } = countParameters(findModel(id).shape);
      assert.ok(Math.abs(active / 1e9 - billions) <= within, `${active / 1e9} against ${billions}`);
    });
  }

  it('of a known model are those of its config, which passes the checks', () => {
    for (const { id, name, config } of rows) {
      const { shape, contextTokens, draftLayers } = modelFromConfig(JSON.stringify(config), name, id);
      const known = findModel(id);
      assert.deepEqual(
        [known.shape, known.contextTokens, known.draftLayers],
        [shape, contextTokens, draftLayers],
      );
    }
  });

  it('are near those that estimates use, everywhere', () => {
    for (const { id, parameters, shape } of MODELS) {
      const { total } = countParameters(shape);
      // 109 x 10^9 of Llama 4 Scout are with its vision tower.
      assert.ok(Math.abs(total / parameters - 1) < (id === 'llama-4-scout' ? 0.02 : 1e-3), id);
    }
  });
});

describe('the KV cache', () => {
  it('takes the published bytes a token', () => {
    const kib = (id: string) => findModel(id).kvBytesPerToken / KIB;
    assert.equal(kib('llama-3-8b'), 128);
    assert.equal(kib('llama-2-7b'), 512);
    assert.equal(kib('llama-3-70b'), 320);
    assert.equal(kib('qwen2.5-7b'), 56);
    assert.equal(kib('mistral-7b'), 128);
    // 70 KB a token against 516 KB of Llama-3.1-405B (DeepSeek-V3, "Insights", table 1).
    assert.equal(findModel('deepseek-v3').kvBytesPerToken, 70_272);
    assert.equal(findModel('llama-3.1-405b').kvBytesPerToken, 516_096);
  });

  it('keeps no more than the window in layers with one', () => {
    const { shape } = findModel('gpt-oss-20b');
    const perLayer = 2 * 8 * 64 * 2;
    assert.equal(kvBytesOfSequence(shape, 100, 2), 24 * 100 * perLayer);
    assert.equal(kvBytesOfSequence(shape, 1000, 2), 12 * 1128 * perLayer);
    assert.equal(kvBytesOfSequence(shape, 1000, 1), 12 * 1128 * (perLayer / 2));
  });

  it('has groups of equally many layers where some attend within windows, as in vLLM', () => {
    const groupsOf = (id: string) => kvOn(findModel(id), 1).kvGroups;
    const perLayer = (kvHeads: number, headSize: number) => 2 * kvHeads * headSize * 2;
    const windows = (count: number, window: number) => Array.from({ length: count }, () => ({ window }));
    // 12 layers of each kind; 10 of 62 with full attention, of which the others fill six groups; 12 of 48 in chunks.
    assert.deepEqual(groupsOf('gpt-oss-20b'), {
      bytesPerToken: 12 * perLayer(8, 64),
      attention: [{ window: 128 }, {}],
    });
    assert.deepEqual(groupsOf('gemma-3-27b'), {
      bytesPerToken: 10 * perLayer(16, 128),
      attention: [...windows(6, 1024), {}],
    });
    assert.deepEqual(groupsOf('llama-4-scout')?.attention, [
      { chunk: 8192 },
      { chunk: 8192 },
      { chunk: 8192 },
      {},
    ]);
    assert.equal(groupsOf('llama-3-8b'), undefined);
  });

  it('leaves room for LoRA adapters as vLLM allocates it', () => {
    // Numbers in the A and B of all layers of vLLM 0.32 with two layers, three adapters and rank 16.
    const shape = {
      ...{ hidden: 256, vocabulary: 4096, tiedEmbeddings: true, queryHeads: 8, kvHeads: 2, headSize: 64 },
      ...{ qkNorm: true, mla: null },
    };
    const gpu = { name: '', memoryGiB: 80, count: 1, usdPerHour: 0 };
    const numbers = (feedForward: FeedForward) =>
      loraGiB(
        { ...shape, layers: [{ count: 2, window: null, feedForward }] },
        { maxLoras: 3, maxLoraRank: 16 },
        { gpu },
      )! *
      2 ** 29;
    const attention = 2 * (73_728 + 36_864) + 2 * 208_896;
    assert.equal(numbers({ inter: 512 }), attention + 2 * (73_728 + 36_864));
    const mixture = { experts: 8, perToken: 2, inter: 128, sharedInter: 0 };
    assert.equal(numbers(mixture), attention + 2 * (12_672 + 442_368));
  });

  it('is copied where there are more GPUs than KV heads', () => {
    const qwen = findModel('qwen3-30b-a3b');
    assert.equal(kvOn(qwen, 4).kvBytesPerToken, qwen.kvBytesPerToken);
    assert.equal(kvOn(qwen, 8).kvBytesPerToken, 2 * qwen.kvBytesPerToken);
    const latent = findModel('deepseek-r1');
    assert.equal(kvOn(latent, 8).kvBytesPerToken, 8 * latent.kvBytesPerToken);
  });
});

describe('a model read from its config.json', () => {
  for (const [id, config] of CONFIGS) {
    it(`is that of the table: ${id}`, () => {
      const known = findModel(id);
      const model = read(config);
      const byCount = (shape: TransformerShape) => ({
        ...shape,
        layers: shape.layers.toSorted((one, other) => key(one) - key(other)),
      });
      const key = ({ count, window, feedForward }: LayerGroup) =>
        count + (window ?? 0) / 1e6 + feedForward.inter / 1e9;
      assert.deepEqual(byCount(model.shape), byCount(known.shape));
      assert.equal(model.contextTokens, known.contextTokens);
      if (id !== 'llama-4-maverick') assert.equal(model.checkpoint, known.checkpoint);
    });
  }

  it('is named after its checkpoint', () => {
    const { id, name, aliases, checkpoints } = read(QWEN_3_MOE);
    assert.deepEqual(
      { id, name, aliases, checkpoints },
      {
        id: 'my-model-1.5b',
        name: 'My-Model_1.5B',
        aliases: ['org/My-Model_1.5B'],
        checkpoints: { FP16: 'org/My-Model_1.5B' },
      },
    );
  });

  it('has the precision of its weights', () => {
    const precision = (quantization_config: object) =>
      read({ ...QWEN_3_MOE, quantization_config }).checkpoint;
    assert.equal(precision({ quant_method: 'compressed-tensors', format: 'float-quantized' }), 'FP8');
    assert.equal(precision({ quant_method: 'compressed-tensors', format: 'int-quantized' }), 'INT8');
    assert.equal(precision({ quant_method: 'compressed-tensors', format: 'pack-quantized' }), 'INT4');
    assert.equal(precision({ quant_method: 'awq', bits: 4 }), 'INT4');
    assert.equal(precision({ quant_method: 'gptq', bits: 8 }), 'INT8');
    assert.equal(precision({ quant_method: 'modelopt', quant_algo: 'NVFP4' }), 'NVFP4');
  });

  it('tells blocks with a scale of their own', () => {
    const blocks = (quantization_config: object) => read({ ...QWEN_3_MOE, quantization_config }).fp8Blocks;
    assert.equal(blocks({ quant_method: 'fp8', weight_block_size: [128, 128] }), true);
    assert.equal(blocks({ quant_method: 'fp8' }), undefined);
    const groups = (strategy: string) => ({ config_groups: { group_0: { weights: { strategy } } } });
    const method = { quant_method: 'compressed-tensors', format: 'float-quantized' };
    assert.equal(blocks({ ...method, ...groups('block') }), true);
    assert.equal(blocks({ ...method, ...groups('channel') }), undefined);
  });

  it('has the bytes and the parts of INT4 weights that its checkpoint says', () => {
    const pack = { quant_method: 'compressed-tensors', format: 'pack-quantized' };
    const groups = { config_groups: { group_0: { weights: { group_size: 32 } } } };
    const quantized = (quantization_config: object) => read({ ...QWEN_3_MOE, quantization_config }).quantized;
    assert.deepEqual(quantized({ ...pack, ...groups, ignore: ['lm_head', 're:.*self_attn.*'] }), {
      ...{ bytes: 4.5 / 16, parts: 'experts' },
    });
    assert.deepEqual(quantized({ quant_method: 'gptq', bits: 4, group_size: 128 }), { bytes: 4.125 / 16 });
    assert.deepEqual(quantized(pack), {});
    assert.equal(quantized({ quant_method: 'gptq', bits: 8, group_size: 128 }), undefined);
  });

  // Published on the model cards: 284B (13B active), 427B and 2.8T parameters.
  const repeated = (count: number, ...values: readonly number[]) =>
    Array.from({ length: count }, () => values).flat();
  const others: readonly (readonly [name: string, billions: number, within: number, config: object])[] = [
    [
      'attention to compressed tokens',
      284,
      1,
      {
        ...{ model_type: 'deepseek_v4', hidden_size: 4096, num_hidden_layers: 43, vocab_size: 129_280 },
        ...{ head_dim: 512, num_attention_heads: 64, num_key_value_heads: 1, q_lora_rank: 1024 },
        ...{ o_groups: 8, o_lora_rank: 1024, sliding_window: 128, max_position_embeddings: 1_048_576 },
        ...{ index_head_dim: 128, index_n_heads: 64, index_topk: 512, num_nextn_predict_layers: 1 },
        ...{
          moe_intermediate_size: 2048,
          n_routed_experts: 256,
          n_shared_experts: 1,
          num_experts_per_tok: 6,
        },
        ...{ compress_ratios: [0, 0, ...repeated(20, 4, 128), 4, 0], hc_mult: 4, expert_dtype: 'fp4' },
      },
    ],
    [
      'attention to blocks that an indexer chooses',
      427,
      2,
      {
        ...{ model_type: 'minimax_m3', hidden_size: 6144, num_hidden_layers: 60, vocab_size: 200_064 },
        ...{ head_dim: 128, num_attention_heads: 64, num_key_value_heads: 4, use_qk_norm: true },
        ...{ intermediate_size: 3072, dense_intermediate_size: 12_288, moe_intermediate_size: 3072 },
        ...{
          first_k_dense_replace: 3,
          moe_layer_freq: [0, 0, 0, ...repeated(57, 1)],
          num_local_experts: 128,
        },
        ...{ num_experts_per_tok: 4, n_shared_experts: 1, max_position_embeddings: 1_048_576 },
        sparse_attention_config: {
          ...{ sparse_attention_freq: [0, 0, 0, ...repeated(57, 1)], sparse_num_index_heads: 4 },
          ...{ sparse_index_dim: 128, sparse_topk_blocks: 16, sparse_block_size: 128 },
        },
      },
    ],
    [
      'delta attention and experts of a width of their own',
      2800,
      50,
      {
        ...{ model_type: 'kimi_linear', hidden_size: 7168, num_hidden_layers: 93, vocab_size: 163_840 },
        ...{ num_attention_heads: 96, num_key_value_heads: 96, kv_lora_rank: 512, q_lora_rank: 1536 },
        ...{ qk_nope_head_dim: 128, qk_rope_head_dim: 64, v_head_dim: 128, mla_use_output_gate: true },
        ...{ intermediate_size: 33_792, moe_intermediate_size: 3072, routed_expert_hidden_size: 3584 },
        ...{ num_experts: 896, num_experts_per_token: 16, num_shared_experts: 2, first_k_dense_replace: 1 },
        ...{ max_position_embeddings: 1_048_576 },
        linear_attn_config: {
          ...{ kda_layers: repeated(92, 1).flatMap((_, i) => (i % 4 === 3 ? [] : [i + 1])) },
          ...{ num_heads: 96, head_dim: 128 },
        },
      },
    ],
  ];
  for (const [name, billions, within, config] of others) {
    it(`has the published parameters with ${name}`, () => {
      const { total } = countParameters(read(config).shape);
      assert.ok(Math.abs(total / 1e9 - billions) <= within, `${total / 1e9}`);
    });
  }

  it('keeps the KV of a window and a share of the context where tokens are compressed', () => {
    const { shape, checkpoint, draftLayers } = read(others[0][3]);
    assert.deepEqual([checkpoint, draftLayers, shape.hyperConnections], ['MXFP4', 1, true]);
    const bytes = (tokens: number) => kvBytesOfSequence(shape, tokens, 2);
    const perToken = 2 * ((21 * (512 + 64)) / 4 + (20 * 512) / 128);
    assert.equal(bytes(8192) - bytes(4096), 4096 * perToken);
    assert.equal(bytes(4096) - 4096 * perToken, 43 * 128 * 512 * 2);
  });

  it('is read by its fields where its type is not known', () => {
    assert.deepEqual(
      read({ ...QWEN_3_MOE, model_type: 'qwen9_moe' }).shape.layers,
      read(QWEN_3_MOE).shape.layers,
    );
  });

  it('is refused by name where a part of it is not supported', () => {
    const refused = (change: object, message: RegExp) =>
      assert.throws(() => read({ ...QWEN_3_MOE, ...change }), {
        name: 'ProfileError',
        code: 'CALIBRATION_HARDWARE',
        message,
      });
    const strange = { model_type: 'toString', swa_head_dim: 64, ssm_state: 0, rope_theta: 1e6 };
    refused(strange, /config\.json: .*got `model_type` "toString" with `swa_head_dim`\..*profile make/);
    refused({ index_topk: 2048 }, /got sparse attention \(`index_topk`\)/);
    refused({ linear_num_value_heads: 32 }, /linear attention/);
    refused({ quantization_config: { quant_method: 'hqq' } }, /weights quantized by "hqq"/);
    refused({ num_attention_heads: 30 }, /30 query and 4 KV heads/);
  });

  it('is refused where a field is missing or wrong', () => {
    const refused = (change: object, message: RegExp) =>
      assert.throws(() => read({ ...QWEN_3_MOE, ...change }), { code: 'PROFILE_FIELD', message });
    refused({ hidden_size: undefined }, /expected `hidden_size` to be a whole number/);
    refused({ num_hidden_layers: 1e9 }, /num_hidden_layers/);
    refused({ num_experts_per_tok: 129 }, /num_experts_per_tok/);
    refused({ sliding_window: 128, use_sliding_window: true, layer_types: ['full_attention'] }, /48 texts/);
    assert.throws(
      () => modelFromConfig('{', 'x', 'c.json'),
      /c\.json: expected the config\.json of a Hugging Face/,
    );
    assert.throws(() => modelFromConfig('[1]', 'x', 'c.json'), /got \[1\]/);
  });
});
