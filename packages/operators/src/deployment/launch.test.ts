import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { findGpu, findProfile } from '@servegym/profiles';
import { closedBatch, simulateTrace } from '@servegym/simulator';
import { adapterNotes, longestRequest, resolveLaunch, withAdapters } from './deployment.ts';
import flagLists from './flag-lists.json' with { type: 'json' };
import { readLaunch } from './launch.ts';
import { servingCommands } from './serving-command.ts';

const read = (text: string) => readLaunch(text, 'test');

describe('a vllm serve line', () => {
  it('gives model, precision, settings and parallelism', () => {
    const launch = read(
      `VLLM_USE_V1=1 vllm serve meta-llama/Llama-3.1-70B-Instruct -tp 4 --max-num-seqs=64 --max_num_batched_tokens 8k \\
        --gpu-memory-utilization 0.92 --no-enable-prefix-caching --kv-cache-dtype fp8 --scheduling-policy priority \\
        --speculative-config '{"method": "eagle3", "model": "x/y", "num_speculative_tokens": 3}' --port 8000`,
    );
    assert.deepEqual([launch.engine, launch.model?.name, launch.replicas], ['vLLM', 'Llama-3.1-70B', 1]);
    assert.deepEqual(launch.settings, {
      ...{ weights: 'FP16', tensorParallel: 4, maxNumSeqs: 64, maxNumBatchedTokens: 8000, memoryShare: 0.92 },
      ...{ prefixCaching: false, fp8KvCache: true, priority: true, speculationDepth: 3 },
      draft: { method: 'eagle3', model: 'x/y' },
    });
    assert.deepEqual(launch.notSimulated, []);
  });

  it('adds the CPU work between iterations to a server that schedules none ahead', () => {
    const lawOf = (flags: string) =>
      resolveLaunch(read(`vllm serve Qwen/Qwen3-8B ${flags}`), { gpu: 'h200' }).profile.weights.FP16!.law;
    const drafts = '--speculative-config \'{"method": "ngram", "num_speculative_tokens": 3}\'';
    const [ahead, after, ofNgrams] = ['', '--no-async-scheduling', drafts].map(lawOf);
    assert.ok(
      after.baseUs >= ahead.baseUs + 100 && after.perDecodeSequenceUs >= ahead.perDecodeSequenceUs + 10,
    );
    assert.deepEqual(ofNgrams, after);
    assert.deepEqual(lawOf('--async-scheduling'), ahead);
  });

  it('lists flags that it does not know or does not simulate, with their values', () => {
    const { notSimulated, settings } = read(
      'vllm serve Qwen/Qwen3-8B --frobnicate 3 --enforce-eager --swift --max-num-seqs 32 --block-size 32 --temperature -1',
    );
    assert.deepEqual(notSimulated, [
      '--frobnicate 3',
      '--enforce-eager',
      '--swift',
      '--block-size 32',
      '--temperature -1',
    ]);
    assert.equal(settings.maxNumSeqs, 32);
  });

  const reasons: readonly (readonly [string, string | undefined])[] = [
    ['--max-num-partial-prefills 4', '--long-prefill-token-threshold is its limit'],
    ['--max-num-partial-prefills 1', undefined],
    ['--fully-sharded-loras', 'default precision and division over GPUs'],
    ['--structured-outputs-config {}', 'requests with a grammar wait for it'],
    ['--data-parallel-size-local 2', 'in step, behind one balancer'],
    ['--data-parallel-hybrid-lb', 'in step, behind one balancer'],
    ['--max-num-scheduled-tokens 512', 'one token budget'],
    ['--scheduler-cls x.Y', 'the default scheduler of vLLM alone'],
  ];
  for (const [engine, start] of [
    ['vLLM', 'vllm serve Qwen/Qwen3-8B'],
    ['SGLang', 'python -m sglang.launch_server --model-path Qwen/Qwen3-8B'],
  ] as const) {
    it(`says of each flag of ${engine} that changes the schedule and is not simulated why`, () => {
      for (const { because, flags = [], switches = [] } of flagLists.notSimulated[engine]) {
        for (const flag of [...flags.map((name) => `${name} 2`), ...switches]) {
          const { notSimulated } = resolveLaunch(read(`${start} ${flag}`), { gpu: 'h100' });
          assert.deepEqual(notSimulated[0], `${flag}: ${because}`);
        }
      }
    });
  }

  it('takes data-parallel replicas as engines, or as ranks of one, and says what differs from vLLM', () => {
    const line = read('vllm serve Qwen/Qwen3-8B -dp 2');
    const { profile } = resolveLaunch(read('vllm serve Qwen/Qwen3-8B'), { gpu: 'h100' });
    for (const on of [{ gpu: 'h100' }, { profile }]) {
      const { engines, router, notSimulated } = resolveLaunch(line, on);
      assert.deepEqual([engines, router], [2, 'least_loaded']);
      assert.match(notSimulated.join(), /^the balancer of --data-parallel-size/);
    }
    const ranks = resolveLaunch(line, { profile: { ...profile, parallel: { data: 2 } } });
    assert.deepEqual([ranks.engines, ranks.router], [1, undefined]);
    assert.match(ranks.notSimulated.join(), /^the ranks of --data-parallel-size/);
  });

  it('has room for LoRA adapters, whose times it says are not simulated', () => {
    const on = (flags: string) => resolveLaunch(read(`vllm serve Qwen/Qwen3-8B ${flags}`), { gpu: 'h100' });
    const flags =
      '--enable-lora --max-loras 4 --max-lora-rank 64 --max-cpu-loras 8 --lora-modules a=/x b=/y --max-num-seqs 64';
    const { profile, settings, notSimulated, adapters } = on(flags);
    assert.deepEqual([profile.engine.maxLoras, profile.engine.maxLoraRank, settings.maxNumSeqs], [4, 64, 64]);
    assert.deepEqual(adapters, { modules: ['a', 'b'], base: ['Qwen/Qwen3-8B'] });
    assert.match(notSimulated.join(), /^slower kernels with LoRA.*66 %/);
    // 36 layers of 4096 and 12288 with 32 heads and 8 of 128, and two tables of 151,936 tokens.
    const numbers = 36 * (3 * 4096 + 6144 + 2 * 4096 + 3 * 4096 + 3 * 12_288) + 2 * (4096 + 151_936);
    const room = profile.memory.overheadGiB - on('').profile.memory.overheadGiB;
    assert.ok(Math.abs(room - (2 * 4 * 64 * numbers) / 2 ** 30) < 1e-9, `${room}`);
    const [{ line }] = servingCommands(profile, settings, 1);
    assert.match(line, /--enable-lora --max-loras 4 --max-lora-rank 64/);
    assert.deepEqual(on('--enable-lora').profile.engine.maxLoraRank, 16);
    const wrong: readonly [string, RegExp][] = [
      ['--max-loras 2', /expected --enable-lora/],
      ['--enable-lora --max-loras 2 --max-cpu-loras 1', /--max-cpu-loras of at least --max-loras 2, got 1/],
      ['--enable-lora --max-lora-rank 24', /--max-lora-rank to be one of 1, 8, 16/],
      ['--enable-lora --lora-modules sql', /adapters such as sql=/],
    ];
    for (const [given, message] of wrong) assert.throws(() => on(given), { code: 'INVALID_LAUNCH', message });
  });

  it('takes the names of the base model in traffic as such, and refuses adapters that it does not have', () => {
    const traffic = (...names: string[]) => ({
      ...closedBatch(names.length, 8, 8),
      adapters: { names, of: Int32Array.from(names.keys(), (i) => i + 1) },
    });
    const on = (flags: string) =>
      resolveLaunch(read(`vllm serve Qwen/Qwen3-8B --served-model-name qwen q ${flags}`), { gpu: 'h100' });
    const some = on('--enable-lora --lora-modules \'{"name": "sql", "path": "/x"}\'');
    assert.deepEqual([...withAdapters(traffic('q', 'sql', 'Qwen/Qwen3-8B'), some).adapters!.of], [0, 2, 0]);
    assert.throws(() => withAdapters(traffic('sql', 'chat'), some), /--lora-modules names \(sql\), got chat/);
    assert.deepEqual([...withAdapters(traffic('chat'), on('--enable-lora')).adapters!.of], [1]);
    assert.match(adapterNotes(traffic('chat'), on('')).join(), /without --enable-lora/);
    assert.deepEqual(adapterNotes(withAdapters(traffic('qwen'), on('')), on('')), []);
  });

  it('says that the KV groups of DeepSeek-V4 are not simulated', () => {
    const given = { profile: findProfile('h100-80gb-llama-3-8b') };
    const [line] = resolveLaunch(read('vllm serve deepseek-ai/DeepSeek-V4-Flash'), given).notSimulated;
    assert.match(line!, /^the KV groups of DeepSeek-V4/);
  });

  for (const [flags, reason] of reasons) {
    it(`says why ${flags} is not simulated, or that it is`, () => {
      const { notSimulated, settings } = read(`vllm serve Qwen/Qwen3-8B ${flags} --max-num-seqs 3`);
      assert.equal(settings.maxNumSeqs, 3);
      if (reason === undefined) assert.deepEqual(notSimulated, []);
      else {
        assert.equal(notSimulated.length, 1);
        assert.ok(
          notSimulated[0].startsWith(`${flags}: `) && notSimulated[0].includes(reason),
          notSimulated[0],
        );
      }
    });
  }

  const precisions: readonly [string, string][] = [
    ['RedHatAI/Meta-Llama-3-8B-Instruct-FP8', 'FP8'],
    ['someone/Qwen3-8B-AWQ', 'INT4'],
    ['RedHatAI/Qwen3-8B-quantized.w8a8', 'INT8'],
    ['openai/gpt-oss-20b', 'MXFP4'],
  ];
  for (const [checkpoint, weights] of precisions) {
    it(`knows ${checkpoint} as ${weights}`, () => {
      const { model, settings } = read(`vllm serve ${checkpoint}`);
      assert.notEqual(model, null);
      assert.equal(settings.weights, weights);
    });
  }

  it('takes quotes inside a word, and stops where the command ends', () => {
    const { settings, notSimulated } = read(
      `export A=1 && vllm serve Qwen/Qwen3-8B --gpu-memory-utilization="0.8" --speculative-config='{"method":"eagle3","num_speculative_tokens":2}' 2>&1 | tee log # --max-num-seqs 4`,
    );
    assert.deepEqual(
      [settings.memoryShare, settings.speculationDepth, settings.maxNumSeqs],
      [0.8, 2, undefined],
    );
    assert.deepEqual(notSimulated, []);
  });

  it('reads draft tokens by batch size, and lists the keys of drafts that it does not read', () => {
    const { settings, notSimulated } = read(
      `vllm serve Qwen/Qwen3-8B --speculative-config '{"num_speculative_tokens":3,"num_speculative_tokens_per_batch_size":[[1,16,3],[17,64,1]],"disable_by_batch_size":64}'`,
    );
    assert.deepEqual(settings.speculationDepthPerBatchSize, [
      [1, 16, 3],
      [17, 64, 1],
    ]);
    assert.deepEqual(notSimulated, ['--speculative-config: disable_by_batch_size']);
  });

  it('knows no model for a folder', () => {
    assert.equal(read('vllm serve ./my-model').model, null);
  });

  it('takes the profiles of a model for its variants, with the context and the checkpoints of the variant', () => {
    const started = (checkpoint: string) => resolveLaunch(read(`vllm serve ${checkpoint}`), { gpu: 'h100' });
    const plain = started('meta-llama/Meta-Llama-3-8B-Instruct');
    const variant = started('RedHatAI/Meta-Llama-3.1-8B-Instruct-FP8');
    const [before, after] = [plain, variant].map(({ profile }) => profile);
    assert.deepEqual({ ...after, model: { ...after!.model, name: before!.model.name } }, before);
    assert.deepEqual([after!.model.name, variant.settings.weights], ['Llama-3.1-8B', 'FP8']);
    assert.deepEqual([plain, variant].map(longestRequest), [8192, 131_072]);
    const [vllm] = servingCommands(after!, variant.settings, 1);
    assert.match(vllm!.line, /^vllm serve RedHatAI\/Meta-Llama-3.1-8B-Instruct-FP8 /);
  });

  const drafting = (flags: string) =>
    resolveLaunch(
      read(`python -m sglang.launch_server --model-path meta-llama/Llama-3.1-8B-Instruct ${flags}`),
      { gpu: 'h100' },
    );
  const chain = '--speculative-algorithm EAGLE --speculative-num-steps 3';

  it('verifies SGLang’s trees of drafts, of which more is accepted than of a chain', () => {
    const deployments = ['', ' --speculative-eagle-topk 4', ' --speculative-eagle-topk 8'].map((topk) =>
      drafting(`${chain}${topk} --speculative-num-draft-tokens 16`),
    );
    const [plain, four, eight] = deployments.map(({ profile }) => profile.speculation!);
    assert.equal(plain!.verifyTokens, undefined);
    assert.deepEqual([four!.verifyTokens, eight!.verifyTokens], [16, 16]);
    assert.equal(eight!.draftPerTokenUs, 8 * plain!.draftPerTokenUs);
    for (const [kind, survival] of Object.entries(four!.survival)) {
      const before = plain!.survival[kind]!;
      for (const [k, share] of survival.entries())
        assert.ok(share > before[k]! && share < (survival[k - 1] ?? 1), `${kind} ${k + 1}: ${share}`);
    }
    assert.deepEqual(
      deployments.map(({ notSimulated }) => notSimulated.length),
      [1, 1, 1],
    );
    // A tree as narrow as a chain.
    const narrow = drafting(`${chain} --speculative-eagle-topk 2 --speculative-num-draft-tokens 4`);
    const [kind, shares] = Object.entries(narrow.profile.speculation!.survival)[0]!;
    assert.ok(
      shares.every((share, k) => share <= plain!.survival[kind]![k]! || k === 0),
      `${shares}`,
    );
  });

  it('takes SGLang’s own drafts where a line names an algorithm alone', () => {
    const { settings, profile } = drafting('--speculative-algorithm EAGLE3');
    assert.deepEqual([settings.speculationDepth, profile.speculation!.verifyTokens], [5, 8]);
    assert.equal(drafting('').settings.speculationDepth, 0);
  });

  it('computes all tokens of a tree', () => {
    const seconds = (tokens: number) => {
      const { profile } = drafting(
        `${chain} --speculative-eagle-topk 2 --speculative-num-draft-tokens ${tokens}`,
      );
      // The same drafts are accepted.
      const survival = { chat: [0.6, 0.4, 0.2] };
      const speculation = { ...profile.speculation!, survival };
      const trace = closedBatch(200, 100, 100);
      const given = { profile: { ...profile, speculation }, speculationDepth: 3, acceptance: 'chat' };
      return simulateTrace(trace, given).simulatedMs / 1000;
    };
    assert.ok(seconds(32) > 1.5 * seconds(4), `${seconds(32)} s, ${seconds(4)} s`);
  });

  const refused: readonly [string, RegExp][] = [
    ['echo hello', /expected a `vllm serve` or SGLang line/],
    ['vllm serve --max-num-seqs 3', /expected the name of a model/],
    ['vllm serve a/b --max-num-seqs', /expected a value after --max-num-seqs/],
    [
      'vllm serve a/b --max-num-seqs many',
      /--max-num-seqs to be a whole number from 1 to 1000000, got `many`/,
    ],
    ['vllm serve a/b --max-num-seqs 1.5', /to be a whole number/],
    [
      'vllm serve a/b --max-num-batched-tokens 512 --max-num-seqs 4096',
      /--max-num-batched-tokens of at least --max-num-seqs 4096, as vLLM does, got `512`/,
    ],
    ['vllm serve a/b --gpu-memory-utilization 1.5', /to be a number from 0.05 to 1/],
    ["vllm serve a/b --speculative-config '{'", /to be JSON/],
    ['{ [', /neither a command line nor YAML/],
  ];
  for (const [line, message] of refused) {
    it(`refuses ${line}`, () => assert.throws(() => read(line), { code: 'INVALID_LAUNCH', message }));
  }

  it('names the reason of a flag also for a key of its JSON', () => {
    const { notSimulated } = read('vllm serve ./own --structured-outputs-config.backend xgrammar');
    assert.match(
      notSimulated[0],
      /^--structured-outputs-config\.backend xgrammar: requests with a grammar wait/,
    );
  });

  it('may name a version, of which no profile is shipped', () => {
    const launch = read('vllm@0.12 serve Qwen/Qwen3-8B');
    assert.equal(launch.version, '0.12');
    assert.throws(
      () => resolveLaunch(launch, { gpu: 'h100' }),
      /profile make aiconfigurator_core --engine vllm-0\.12 /,
    );
  });
});

describe('an SGLang line', () => {
  it('gives the settings under their names there', () => {
    const { engine, model, settings, notSimulated } = read(
      'python3 -m sglang.launch_server --model-path Qwen/Qwen3-32B --tp 2 --max-running-requests 128 --chunked-prefill-size 4096 --disable-radix-cache --mem-fraction-static 0.85 --attention-backend fa3',
    );
    assert.deepEqual([engine, model?.name], ['SGLang', 'Qwen3-32B']);
    assert.deepEqual(settings, {
      ...{ weights: 'FP16', tensorParallel: 2, maxNumSeqs: 128, maxNumBatchedTokens: 4096 },
      ...{ prefixCaching: false, memoryShare: 0.85 },
    });
    assert.deepEqual(notSimulated, ['--attention-backend fa3']);
  });

  it('has the defaults and the memory of SGLang', () => {
    const line = 'python -m sglang.launch_server --model-path meta-llama/Llama-3.1-8B-Instruct';
    const started = (flags: string, gpu = 'h100') => {
      const { settings, profile } = resolveLaunch(read(`${line} ${flags}`), { gpu });
      const { utilization, overheadGiB } = profile.memory;
      const { maxNumSeqs, maxNumBatchedTokens } = settings;
      const leftMiB = Math.round((1 - utilization) * profile.gpu.memoryGiB * 1024);
      return [maxNumSeqs, maxNumBatchedTokens, leftMiB, overheadGiB];
    };
    // 512 MiB, 1.5 for a token of a chunk, 2 for a sequence of a CUDA graph, 128 for a GPU.
    const left = 512 + 1.5 * 8192 + 2 * 256 + 128;
    assert.deepEqual(started(''), [2048, 8192, left, 0]);
    assert.deepEqual(started('', 'b200').slice(0, 2), [2048, 16384]);
    const drafts = started('--speculative-algorithm EAGLE --speculative-num-steps 3');
    assert.deepEqual(drafts, [48, 8192, left + 2048, 0]);
    const given = started('--mem-fraction-static 0.7 --max-running-requests 9');
    assert.deepEqual([given[0], given[2]], [9, Math.round(0.3 * findGpu('h100').memoryGiB * 1024)]);
    assert.equal(read(line.replace('launch_server', 'launch_server@0.5.9')).version, '0.5.9');
  });

  it('lets decodes wait while others prefill, unless it mixes chunks into them', () => {
    const line = 'python -m sglang.launch_server --model-path meta-llama/Llama-3.1-8B-Instruct';
    const scheduled = (flags: string) =>
      resolveLaunch(read(`${line} ${flags}`), { gpu: 'h100' }).profile.engine.prefillFirst;
    assert.deepEqual(['', '--enable-mixed-chunk'].map(scheduled), [true, false]);
  });
});

describe('a Kubernetes manifest', () => {
  const deployment = (container: string) => `
apiVersion: v1
kind: Service
metadata: { name: llm }
---
apiVersion: apps/v1
kind: Deployment
metadata: { name: llm }
spec:
  replicas: 3
  template:
    spec:
      containers:
        - name: proxy
          image: envoy
        - name: engine
${container}
`;

  it('gives the arguments of the image of vLLM, and the replicas', () => {
    const launch = read(
      deployment(`          image: vllm/vllm-openai:v0.32.0
          args: ["Qwen/Qwen3-8B", "--max-num-seqs", "64"]`),
    );
    assert.deepEqual([launch.model?.name, launch.replicas, launch.settings.maxNumSeqs], ['Qwen3-8B', 3, 64]);
  });

  it('reads a line in a shell', () => {
    const launch = read(
      deployment(`          image: python
          command: ["/bin/sh", "-c"]
          args:
            - |
              vllm serve Qwen/Qwen3-8B \\
                --max-num-seqs 16`),
    );
    assert.deepEqual([launch.checkpoint, launch.settings.maxNumSeqs], ['Qwen/Qwen3-8B', 16]);
  });

  it('puts variables into arguments, and lists those of the engine', () => {
    const launch = read(
      deployment(`          image: vllm/vllm-openai
          env:
            - { name: SEQS, value: "24" }
            - { name: VLLM_ATTENTION_BACKEND, value: FLASHINFER }
          args: ["Qwen/Qwen3-8B", "--max-num-seqs", "$(SEQS)"]`),
    );
    assert.equal(launch.settings.maxNumSeqs, 24);
    assert.deepEqual(launch.notSimulated, ['VLLM_ATTENTION_BACKEND']);
  });

  it('refuses no replicas', () => {
    const none = deployment(`          image: vllm/vllm-openai
          args: ["Qwen/Qwen3-8B"]`).replace('replicas: 3', 'replicas: 0');
    assert.throws(() => read(none), /expected replicas to be a whole number above 0, got 0/);
  });

  it('refuses one without an engine, and one with two', () => {
    assert.throws(() => read(deployment('          image: redis')), /found none/);
    const engine = `          image: vllm/vllm-openai
          args: ["Qwen/Qwen3-8B"]`;
    assert.throws(
      () => read(`${deployment(engine)}\n---${deployment(engine)}`),
      /expected one engine, found 2/,
    );
  });
});

describe('Helm values', () => {
  it('of the production stack', () => {
    const launch = read(`
servingEngineSpec:
  modelSpec:
    - name: qwen
      modelURL: Qwen/Qwen3-8B
      replicaCount: 4
      requestGPU: 1
      requestGPUType: nvidia.com/gpu
      vllmConfig:
        maxNumSeqs: 48
        tensorParallelSize: 2
        enablePrefixCaching: false
        novelty: 1
        enableChunkedPrefill: false
        extraArgs: ["--max-num-batched-tokens", "4096", "--disable-log-requests"]
`);
    assert.deepEqual([launch.model?.name, launch.replicas], ['Qwen3-8B', 4]);
    assert.deepEqual(launch.settings, {
      ...{
        weights: 'FP16',
        tensorParallel: 2,
        maxNumSeqs: 48,
        maxNumBatchedTokens: 4096,
        prefixCaching: false,
        chunkedPrefill: false,
      },
    });
    assert.deepEqual(launch.notSimulated, ['vllmConfig.novelty', 'requestGPUType']);
  });

  it('of the model service of llm-d', () => {
    const launch = read(`
modelArtifacts:
  uri: hf://Qwen/Qwen3-32B
decode:
  replicas: 2
  parallelism: { tensor: 4 }
  containers:
    - name: vllm
      image: ghcr.io/llm-d/llm-d
      args: ["--max-num-seqs", "96"]
prefill:
  replicas: 1
`);
    assert.deepEqual([launch.model?.name, launch.replicas], ['Qwen3-32B', 2]);
    assert.deepEqual([launch.settings.tensorParallel, launch.settings.maxNumSeqs], [4, 96]);
    assert.deepEqual(launch.notSimulated, ['prefill.replicas 1']);
  });
});
