import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { WeightPrecision } from '@servegym/simulator';
import { findProfile, listProfiles } from '../data/catalog.ts';
import { findGpu, GPUS } from '../data/gpu.ts';
import { findModel, MODELS, modelFromConfig } from '../data/model-config.ts';

import { parseEngineProfile } from '../schema/parse-engine-profile.ts';
import { ProfileError } from '../schema/read-json.ts';
import { withDraftHead } from './blank-profile.ts';
import { estimatedProfile } from './estimated-profile.ts';
import { simulateBatch } from './simulated-batch.ts';

/** Estimates of constants before these: llmserve 0.3 plays on them under its shift `other_gpu`, and its results stay. */
const OLDER = ['l40s-48gb-llama-3-8b', 'l40s-48gb-mistral-7b'];

describe('an estimated profile', () => {
  it('is what the catalog has of it', () => {
    const estimated = listProfiles().filter(({ status }) => status === 'estimated');
    assert.ok(estimated.length >= 20);
    for (const profile of estimated.filter(({ name }) => !OLDER.includes(name))) {
      const { gpu, model } = profile;
      // Rewards count with the price of when a profile was made, so that it stays.
      const known = { ...findGpu(gpu.name), usdPerHour: gpu.usdPerHour };
      assert.deepEqual(estimatedProfile(known, findModel(model.name), gpu.count), profile);
    }
  });

  it('lies near what was measured with an engine a generation older', () => {
    const shapes = [
      { batch: 1, inputTokens: 1024, outputTokens: 1024 },
      { batch: 16, inputTokens: 1024, outputTokens: 1024 },
    ];
    for (const name of ['a100-40gb-llama-3-8b', 'h100-80gb-llama-3-8b', 'gh200-96gb-llama-3-8b']) {
      const measured = findProfile(name);
      const estimated = estimatedProfile(findGpu(measured.gpu.name), findModel(measured.model.name), 1);
      for (const shape of shapes) {
        const ratio = simulateBatch(estimated, 'FP16', shape) / simulateBatch(measured, 'FP16', shape);
        // A100 reads the weights of one sequence faster than those of sixteen, which served loads are about.
        assert.ok(ratio > 0.65 && ratio < 1.2, `${name}, batch ${shape.batch}: ${ratio}`);
      }
    }
  });

  it('lies near what was measured of an iteration of vLLM V1 on H100', () => {
    const { law } = estimatedProfile(findGpu('h100-80gb'), findModel('llama-3-8b'), 1).weights.FP16!;
    // 5.89 ms and 0.4 to 1.2 ms of CPU, 21.0 us a token, 39.3 ns a token of KV (BLIS, Llama-3.1-8B in BF16).
    const fixedMs = (law.baseUs + law.weightReadUs) / 1000;
    assert.ok(fixedMs > 6.29 && fixedMs < 7.09, String(fixedMs));
    assert.ok(Math.abs(law.perTokenUs / 21 - 1) < 0.15, String(law.perTokenUs));
    // The served loads ask for more: 0.76 of the bandwidth, where 39.3 ns are all of it.
    assert.ok(Math.abs(law.perContextTokenNs / 39.3 - 1) < 0.35, String(law.perContextTokenNs));
  });

  it('drafts with the MTP layer of a config.json, or else with an EAGLE head', () => {
    const config = {
      ...{ model_type: 'deepseek_v3', hidden_size: 7168, vocab_size: 129_280, max_position_embeddings: 4096 },
      ...{ num_attention_heads: 128, num_hidden_layers: 61, q_lora_rank: 1536, kv_lora_rank: 512 },
      ...{ qk_nope_head_dim: 128, qk_rope_head_dim: 64, v_head_dim: 128, intermediate_size: 18_432 },
      ...{ first_k_dense_replace: 3, moe_intermediate_size: 2048, n_routed_experts: 256 },
      ...{ n_shared_experts: 1, num_experts_per_tok: 8, quantization_config: { quant_method: 'fp8' } },
    };
    const draftOf = (layers: object) => {
      const model = modelFromConfig(JSON.stringify({ ...config, ...layers }), 'own/r1', 'config.json');
      return estimatedProfile(findGpu('h200-141gb'), model, 8).speculation!;
    };
    const mtp = draftOf({ num_nextn_predict_layers: 1 });
    assert.equal(mtp.method, 'MTP');
    // DeepSeek states 11.5 billion parameters of its own for the layer; in FP8, on eight GPUs.
    assert.ok(Math.abs((mtp.draftGiB * 8 * 2 ** 30) / 11.5e9 - 1) < 0.1, `${mtp.draftGiB}`);
    const [first, ...others] = mtp.survival.sharegpt;
    const length = 1 + others.slice(0, 6).reduce((sum, each) => sum + each, first);
    assert.deepEqual([first, Number(length.toFixed(1))], [0.82, 3.2]);
    assert.equal(draftOf({ mtp_num_hidden_layers: 1 }).method, 'MTP');
    for (const none of [{}, { num_nextn_predict_layers: 0 }]) assert.equal(draftOf(none).method, 'EAGLE');
    assert.throws(() => draftOf({ num_nextn_predict_layers: 'one' }), /num_nextn_predict_layers/);
  });

  it('exists for every GPU and model, on as many GPUs as it takes', () => {
    for (const gpu of GPUS) {
      for (const model of MODELS) {
        const fitting = [1, 2, 4, 8, 16, 32, 64, 128].find((count) => {
          try {
            return parseEngineProfile(JSON.stringify(estimatedProfile(gpu, model, count)), 'test');
          } catch (error) {
            assert.ok(error instanceof ProfileError, String(error));
            return false;
          }
        });
        // FP8 checkpoints need a GPU that multiplies in FP8.
        const expected = gpu.fp8Tflops !== null || model.checkpoint !== 'FP8';
        assert.equal(fitting !== undefined, expected, `${gpu.id} ${model.id}`);
      }
    }
  });

  it('reads an FP8 KV cache faster where FP8 is multiplied, and far slower elsewhere', () => {
    const model = findModel('llama-3-8b');
    for (const [name, least, most] of [
      ['h100-80gb', 0.5, 0.6],
      ['a100-40gb', 11, 12],
    ] as const) {
      const plain = estimatedProfile(findGpu(name), model, 1);
      const profile = estimatedProfile(findGpu(name), model, 1, undefined, 'FP8');
      assert.equal(profile.name, `${plain.name}-fp8kv`);
      assert.equal(profile.model.kvBytesPerToken, plain.model.kvBytesPerToken / 2);
      const ratio = profile.weights.INT8!.law.perContextTokenNs / plain.weights.INT8!.law.perContextTokenNs;
      assert.ok(ratio > least && ratio < most, `${name}: ${ratio}`);
      assert.deepEqual(parseEngineProfile(JSON.stringify(profile), 'test'), profile);
    }
  });

  it('has weights of the size of published checkpoints', () => {
    const sizeGb = (model: string, weights: WeightPrecision) =>
      (estimatedProfile(findGpu('b200-180gb'), findModel(model), 8).weights[weights]!.weightGiB *
        8 *
        2 ** 30) /
      1e9;
    // Bytes of the safetensors files on Hugging Face.
    for (const [model, weights, gigabytes] of [
      ['llama-3-8b', 'FP16', 16.06],
      ['llama-3-8b', 'FP8', 9.08],
      ['llama-3-8b', 'INT8', 9.09],
      ['llama-3-8b', 'INT4', 5.74],
      ['qwen2.5-7b', 'INT4', 5.57],
      ['gpt-oss-20b', 'MXFP4', 13.76],
      ['gpt-oss-120b', 'MXFP4', 65.25],
      ['qwen3-30b-a3b', 'FP8', 31.2],
    ] as const) {
      assert.ok(
        Math.abs(sizeGb(model, weights) / gigabytes - 1) < 0.04,
        `${model} ${weights}: ${sizeGb(model, weights)}`,
      );
    }
  });

  it('leaves out weights that do not fit', () => {
    const profile = estimatedProfile(findGpu('h100-80gb'), findModel('llama-3-70b'), 1);
    assert.deepEqual(Object.keys(profile.weights), ['FP8', 'INT8', 'INT4']);
    assert.deepEqual(parseEngineProfile(JSON.stringify(profile), 'test'), profile);
  });

  it('reads fewer experts of a mixture for a small batch', () => {
    const profile = estimatedProfile(findGpu('h100-80gb'), findModel('llama-4-scout'), 2);
    const [one, four, many] = [1, 4, 64].map((batch) =>
      simulateBatch(profile, 'FP8', { batch, inputTokens: 64, outputTokens: 256 }),
    ) as [number, number, number];
    assert.ok(four > 1.3 * one, `${one} ${four}`);
    assert.ok(many > 2 * one && many < 6 * one, `${one} ${many}`);
  });

  it('is refused when no weights fit', () => {
    assert.throws(() => estimatedProfile(findGpu('rtx4090-24gb'), findModel('llama-3-70b'), 1), {
      name: 'ProfileError',
      code: 'CALIBRATION_HARDWARE',
    });
  });

  it('is faster on more GPUs, and slower a token for a larger model', () => {
    const shape = { batch: 16, inputTokens: 512, outputTokens: 128 };
    const seconds = (gpu: string, model: string, count: number) =>
      simulateBatch(estimatedProfile(findGpu(gpu), findModel(model), count), 'FP16', shape);
    assert.ok(seconds('h100-80gb', 'llama-3-70b', 8) < seconds('h100-80gb', 'llama-3-70b', 4));
    assert.ok(seconds('h200-141gb', 'llama-3-8b', 1) < seconds('h100-80gb', 'llama-3-8b', 1) * 1.5);
    assert.ok(seconds('h100-80gb', 'yi-34b', 2) > seconds('h100-80gb', 'mistral-nemo-12b', 2));
  });
});

describe('a draft of a config.json', () => {
  const head = {
    ...{ model_type: 'llama', hidden_size: 4096, intermediate_size: 14_336, num_hidden_layers: 1 },
    ...{
      num_attention_heads: 32,
      num_key_value_heads: 8,
      vocab_size: 128_256,
      max_position_embeddings: 2048,
    },
  };
  const usual = estimatedProfile(findGpu('h100-80gb'), findModel('llama-3-8b'), 1);
  const withHead = (more: object) =>
    withDraftHead(usual, JSON.stringify({ ...head, ...more }), 'config.json').speculation!;

  it('is the usual one where it is an EAGLE head of one layer of the model', () => {
    assert.deepEqual(withHead({}), usual.speculation);
  });

  it('reads the output layer of its own vocabulary, and keeps the KV of its own heads', () => {
    const eagle3 = withHead({ draft_vocab_size: 32_000, num_key_value_heads: 4 });
    const parameters = 218e6 - 4096 * 128 * 8 + 3 * 4096 ** 2 + 4096 * 128 * (32 + 8) + 32_000 * 4096;
    assert.ok(Math.abs(eagle3.draftGiB / ((2 * parameters) / 2 ** 30) - 1) < 0.01, `${eagle3.draftGiB}`);
    assert.ok(eagle3.draftBaseUs < 0.75 * usual.speculation!.draftBaseUs);
    assert.equal(eagle3.draftPerContextTokenNs, usual.speculation!.draftPerContextTokenNs / 2);
  });
});

describe('every profile', () => {
  it('reads weights about as fast as the memory of its GPU at most', () => {
    for (const { name, gpu, weights } of listProfiles()) {
      const { memoryGBps } = findGpu(gpu.name);
      for (const [precision, { law, weightGiB }] of Object.entries(weights)) {
        // The table of the token embedding is stored, but not read: up to 20 % of a quantized model.
        const readUs = law.weightReadUs + (law.experts?.readUs ?? 0);
        const gigabytesPerSecond = (0.8 * weightGiB * 2 ** 30) / (readUs * 1e3);
        assert.ok(gigabytesPerSecond < 1.1 * memoryGBps, `${name} ${precision}: ${gigabytesPerSecond} GB/s`);
      }
    }
  });
});
