import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { findProfile } from '@servegym/profiles';
import { type RunningEndpoint, startEndpoint } from '../start-endpoint.ts';
import { VLLM_SERIES } from './vllm-series.fixture.ts';

const CONTEXT_TOKENS = 4096;
/** The pool holds one of two prompts with their outputs. */
const KV_BLOCKS = 40;

describe('the metrics of an endpoint', () => {
  let endpoint: RunningEndpoint;
  let text: string;
  before(async () => {
    const profile = findProfile('a100-40gb-llama-3-8b');
    const blockGiB = (profile.model.kvBytesPerToken * profile.memory.blockTokens) / 2 ** 30;
    const { memoryGiB } = profile.gpu;
    const free = memoryGiB * profile.memory.utilization - profile.weights.FP16!.weightGiB;
    const small = { ...profile.memory, overheadGiB: free - (KV_BLOCKS + 0.5) * blockGiB };
    endpoint = await startEndpoint({
      profile: { ...profile, memory: small },
      config: {
        maxNumSeqs: 256,
        kvBudgetFraction: 1,
        speculationDepth: 0,
        weights: 'FP16',
        split: false,
        schedulingPolicy: 'fcfs',
      },
      engines: 1,
      maxNumBatchedTokens: 2048,
      acceptance: 'sharegpt',
      prefixCaching: true,
      maxModelLen: CONTEXT_TOKENS,
      timeScale: 50,
      apiKeys: [],
      seed: 0,
      port: 0,
      host: '127.0.0.1',
    });
    const prompt = [1000, 2000].map((first) => Array.from({ length: 200 }, (_, i) => first + i));
    const answer = await fetch(`${endpoint.url}/v1/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ prompt, max_tokens: 200, ignore_eos: true }),
    });
    assert.equal(answer.status, 200);
    text = await (await fetch(`${endpoint.url}/metrics`)).text();
  });
  after(() => endpoint.close());

  const sampleOf = (series: string) =>
    Number(
      text
        .split('\n')
        .find((line) => line.startsWith(series))
        ?.split(' ')
        .at(-1),
    );

  for (const [name, { type, labels = {}, buckets }] of Object.entries(VLLM_SERIES)) {
    it(`have ${name} as vLLM 0.32 has it`, () => {
      const lines = text.split('\n');
      assert.ok(lines.includes(`# TYPE ${name} ${type}`), `no TYPE ${type}`);
      const own = lines.filter((line) => new RegExp(`^${name}(_bucket|_sum|_count)?\\{`).test(line));
      for (const [label, values] of Object.entries(labels)) {
        const found = new Set(own.map((line) => new RegExp(`\\b${label}="([^"]*)"`).exec(line)?.[1]));
        if (values.length > 0) assert.deepEqual([...found].sort(), [...values].sort(), label);
        else assert.ok(!found.has(undefined), label);
      }
      if (buckets !== undefined) {
        const bounds = own.flatMap((line) => /_bucket\{.*le="(\d[^"]*)"/.exec(line)?.[1] ?? []);
        assert.deepEqual(bounds.map(Number), buckets);
      }
      if (type !== 'gauge') {
        const created = `${type === 'counter' ? name.replace(/_total$/, '') : name}_created`;
        assert.ok(lines.includes(`# TYPE ${created} gauge`), created);
        assert.ok(sampleOf(`${created}{`) > 1.7e9);
      }
    });
  }

  it('count preemptions by request, and tokens by source', () => {
    const preempted = sampleOf('vllm:num_preemptions_total{');
    assert.ok(preempted > 0);
    assert.equal(sampleOf('vllm:request_num_preemptions_sum{'), preempted);
    const [all, computed, cached] = [
      'vllm:prompt_tokens_total{',
      'vllm:prompt_tokens_by_source_total{model_name="Llama-3-8B",engine="0",source="local_compute"}',
      'vllm:prompt_tokens_cached_total{',
    ].map(sampleOf);
    assert.ok(computed > 0);
    assert.equal(all, computed + cached);
    assert.equal(sampleOf('vllm:request_params_max_tokens_sum{'), 400);
  });
});
