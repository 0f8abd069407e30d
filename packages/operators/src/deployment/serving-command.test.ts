import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { findProfile, knownCheckpoint, listProfiles, profilesOf } from '@servegym/profiles';
import {
  type EngineProfile,
  kvPoolBlocks,
  kvTokens,
  VLLM_FRONT_END,
  type WeightPrecision,
} from '@servegym/simulator';
import { vllmDefaults } from '../search/candidate.ts';
import { servingCommands } from './serving-command.ts';

describe('the command line of a server', () => {
  it('is that of the defaults where nothing differs', () => {
    const profile = findProfile('h100-80gb-llama-3-8b');
    const [vllm] = servingCommands(profile, vllmDefaults(profile), 1);
    assert.equal(
      vllm!.line,
      'vllm serve meta-llama/Meta-Llama-3-8B-Instruct --max-num-seqs 1024 --max-num-batched-tokens 8192 ' +
        '--gpu-memory-utilization 0.9 --enable-prefix-caching',
    );
    assert.deepEqual(vllm!.notExpressed, []);
  });

  it('has the flags of the scheduler that are not the defaults', () => {
    const profile = findProfile('h100-80gb-llama-3-8b');
    const scheduler = {
      ...{ longPrefillTokenThreshold: 512, longPrefillTokenThresholdAdaptive: true, watermark: 0.01 },
      ...{ wholePromptFits: false, asyncScheduling: false, chunkedPrefill: false },
    };
    const started = {
      ...profile,
      engine: { ...profile.engine, ...scheduler },
      frontEnd: { ...VLLM_FRONT_END, processes: 4 },
    };
    const [vllm, sglang] = servingCommands(started, vllmDefaults(started), 1);
    const flags =
      '--api-server-count 4 --long-prefill-token-threshold 512 --long-prefill-token-threshold-adaptive --watermark 0.01 ' +
      '--no-scheduler-reserve-full-isl --no-enable-chunked-prefill --no-async-scheduling';
    assert.ok(vllm!.line.endsWith(` ${flags}`), vllm!.line);
    assert.match(vllm!.line, /--max-num-batched-tokens 8192 --max-model-len 8192 /);
    assert.ok(sglang!.notExpressed.join('; ').includes(flags));
  });

  it('bounds requests where the KV pool holds fewer tokens than the context, as vLLM does not start then', () => {
    const [small] = profilesOf(knownCheckpoint('Llama-3.1-8B')!.model).filter(
      ({ gpu }) => gpu.name === 'RTX4090-24GB',
    );
    const [vllm, sglang] = servingCommands(small!, vllmDefaults(small!), 1);
    const longest = Number(/--max-model-len (\d+)/.exec(vllm!.line)?.[1]);
    assert.equal(longest, kvTokens(small!, kvPoolBlocks(small!, 'FP16', false, 1)));
    assert.ok(longest < 131_072 && !sglang!.line.includes('context-length'));
    const fits = findProfile(small!.name);
    assert.doesNotMatch(servingCommands(fits, vllmDefaults(fits), 1)[0]!.line, /max-model-len/);
  });

  it('gives draft tokens by batch size where the profile has them', () => {
    const found = findProfile('a100-80gb-llama-3-70b-tp4');
    const engine = { ...found.engine, speculationDepthPerBatchSize: [[1, 16, 3] as const] };
    const candidate = { ...vllmDefaults(found), speculationDepth: 3 };
    const [vllm] = servingCommands({ ...found, engine }, candidate, 1);
    assert.match(
      vllm!.line,
      /"num_speculative_tokens":3,"num_speculative_tokens_per_batch_size":\[\[1,16,3\]\]/,
    );
  });

  it('has the flags of what is searched only where it is named, in the place of those of the profile', () => {
    const profile = findProfile('a100-80gb-llama-3-70b-tp4');
    const candidate = {
      ...{ ...vllmDefaults(profile), maxNumSeqs: 128, speculationDepth: 3, maxNumActiveSeqs: 48 },
      ...{ longPrefillTokenThreshold: 256, longPrefillTokenThresholdAdaptive: true, speculationMaxBatch: 16 },
    };
    const limited = { ...profile.engine, longPrefillTokenThreshold: 2048 };
    const [vllm, sglang] = servingCommands({ ...profile, engine: limited }, candidate, 1);
    assert.match(
      vllm!.line,
      / --max-num-seqs 128 --max-num-active-seqs 48 .* --long-prefill-token-threshold 256 --long-prefill-token-threshold-adaptive .*"num_speculative_tokens":3,"num_speculative_tokens_per_batch_size":\[\[1,16,3\],\[17,128,0\]\]/,
    );
    assert.match(vllm!.notExpressed.join('; '), /VLLM_USE_V2_MODEL_RUNNER=1/);
    assert.match(sglang!.line, / --max-running-requests 48 /);
    assert.match(
      sglang!.notExpressed.join('; '),
      /draft tokens by batch size.*--long-prefill-token-threshold 256 --long-prefill-token-threshold-adaptive/,
    );
  });

  it('divides a model as the profile does', () => {
    const profile = findProfile('h100-80gb-mixtral-8x7b-tp2');
    const lines = (count: number, parallel: EngineProfile['parallel']) =>
      servingCommands({ ...profile, gpu: { ...profile.gpu, count }, parallel }, vllmDefaults(profile), 1).map(
        ({ line }) => line,
      );
    const [vllm, sglang] = lines(8, { data: 2, expert: 8 });
    assert.match(vllm!, /--tensor-parallel-size 4 --data-parallel-size 2 --enable-expert-parallel --max/);
    assert.match(sglang!, /--tp-size 8 --dp-size 2 --enable-dp-attention --ep-size 8 --max/);
    const [staged, stagedToo] = lines(4, { pipeline: 2 });
    assert.match(staged!, /--tensor-parallel-size 2 --pipeline-parallel-size 2 --max/);
    assert.match(stagedToo!, /--tp-size 2 --pp-size 2 --max/);
  });

  it('names what it cannot say', () => {
    const profile = findProfile('a100-80gb-llama-3-70b-tp4');
    const candidate = {
      ...vllmDefaults(profile),
      ...{
        maxNumSeqs: 64,
        maxNumBatchedTokens: 1024,
        kvBudgetFraction: 0.5,
        prefixCaching: false,
        split: '1:1' as const,
      },
      ...{ speculationDepth: 3, weights: 'INT8' as const, priority: true },
    };
    const [vllm, sglang] = servingCommands(profile, candidate, 2);
    assert.match(
      vllm!.line,
      /--tensor-parallel-size 4 .*--no-enable-prefix-caching .*"num_speculative_tokens":3/,
    );
    assert.match(
      sglang!.line,
      /--tp-size 4 .*--disable-radix-cache .*--speculative-num-steps 3 .*--speculative-num-draft-tokens 4.*--disaggregation-mode prefill/,
    );
    for (const { line, notExpressed } of [vllm!, sglang!]) {
      assert.match(line, /yuhuili\/EAGLE-LLaMA3-Instruct-70B/);
      assert.match(
        notExpressed.join('; '),
        /priority.*INT8 weights.*2 replicas|INT8 weights.*priority.*2 replicas/,
      );
    }
    assert.match(vllm!.line, / --scheduling-policy priority/);
    assert.match(sglang!.line, / --enable-priority-scheduling --schedule-low-priority-values-first/);
    // With a draft SGLang does not mix chunks into decodes.
    assert.doesNotMatch(sglang!.line, /--enable-mixed-chunk/);
    const share = Number(/--gpu-memory-utilization ([\d.]+)/.exec(vllm!.line)![1]);
    assert.ok(share > 0.3 && share < 0.9, `${share}`);
  });

  it('says how requests reach engines that prefill and those that decode', () => {
    const profile = findProfile('h100-80gb-llama-3-8b');
    const candidate = { ...vllmDefaults(profile), split: '2:1' as const };
    const [vllm, sglang] = servingCommands(profile, candidate, 6, { router: 'prefix_aware' });
    assert.match(vllm!.line, /--kv-transfer-config .*NixlConnector/);
    assert.match(vllm!.notExpressed.join(), /2 of every 3 engines prefill.*the 6 replicas/);
    assert.match(vllm!.notExpressed.join(), /--routing-logic prefixaware/);
    assert.match(sglang!.line, /--disaggregation-mode prefill$/);
  });

  it('names a checkpoint for every shipped profile and precision, in words that a shell takes', () => {
    for (const profile of listProfiles()) {
      for (const weights of Object.keys(profile.weights) as WeightPrecision[]) {
        const candidate = { ...vllmDefaults(profile), weights, speculationDepth: 2 };
        for (const { line } of servingCommands(profile, candidate, 1)) {
          assert.match(
            line,
            /(?:serve|--model-path) (?:\.\/)?[\w.-]+(?:\/[\w.-]+)? -/,
            `${profile.name}: ${line}`,
          );
          assert.doesNotMatch(line, /[<>]/);
        }
      }
    }
  });

  it('takes published weights of the precision, else makes or asks for them', () => {
    const lineOf = (name: string, weights: WeightPrecision) => {
      const profile = findProfile(name);
      const [vllm] = servingCommands(profile, { ...vllmDefaults(profile), weights }, 1);
      return vllm!;
    };
    assert.match(lineOf('h100-80gb-qwen3-30b-a3b', 'FP8').line, /^vllm serve Qwen\/Qwen3-30B-A3B-FP8 --max/);
    assert.match(lineOf('h100-80gb-qwen2.5-7b', 'INT4').line, /^vllm serve Qwen\/Qwen2\.5-7B-Instruct-AWQ /);
    assert.match(
      lineOf('h100-80gb-yi-34b-tp2', 'FP8').line,
      /^vllm serve 01-ai\/Yi-34B-Chat .*--quantization fp8$/,
    );
    const made = lineOf('h100-80gb-yi-34b-tp2', 'INT8');
    assert.match(made.line, /^vllm serve \.\/Yi-34B-Chat-INT8 /);
    assert.match(made.notExpressed.join(), /quantize 01-ai\/Yi-34B-Chat to W8A8 INT8/);
  });

  it('says the precision of the KV cache', () => {
    const shipped = findProfile('h100-80gb-llama-3-8b');
    const profile = { ...shipped, model: { ...shipped.model, kvCache: 'FP8' as const } };
    const [vllm, sglang] = servingCommands(profile, vllmDefaults(profile), 1);
    assert.match(vllm!.line, / --kv-cache-dtype fp8$/);
    assert.match(sglang!.line, / --kv-cache-dtype fp8_e4m3$/);
  });

  it('takes the name of a model that only its profile knows', () => {
    const shipped = findProfile('h100-80gb-llama-3-8b');
    const profile = { ...shipped, model: { ...shipped.model, name: 'my-model' } };
    const [vllm] = servingCommands(profile, vllmDefaults(profile), 1);
    assert.match(vllm!.line, /^vllm serve my-model /);
    assert.match(vllm!.notExpressed.join(), /put the id or folder of yours/);
  });
});
