import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { findProfile } from '@servegym/simulator';
import { vllmDefaults } from './candidate.ts';
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

  it('names what it cannot say', () => {
    const profile = findProfile('a100-80gb-llama-3-70b-tp4');
    const candidate = {
      ...{
        maxNumSeqs: 64,
        maxNumBatchedTokens: 1024,
        kvBudgetFraction: 0.5,
        prefixCaching: false,
        split: true,
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
});
