import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { it } from 'node:test';
import { readVllmMetrics } from './vllm-metrics.ts';

/** Metrics of vLLM V1 with two engines, shortened. */
const TEXT = `# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="m"} 3.0
vllm:num_requests_running{engine="1",model_name="m"} 4.0
vllm:num_requests_waiting{engine="0",model_name="m"} 2.0
vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.25
vllm:kv_cache_usage_perc{engine="1",model_name="m"} 0.75
vllm:num_preemptions_total{engine="0",model_name="m"} 1.0
vllm:num_preemptions_created{engine="0",model_name="m"} 1.7e+09
vllm:time_to_first_token_seconds_bucket{engine="0",le="0.1",model_name="m"} 4.0
vllm:time_to_first_token_seconds_count{engine="0",model_name="m"} 4.0
vllm:time_to_first_token_seconds_sum{engine="0",model_name="m"} 0.25
vllm:inter_token_latency_seconds_count{engine="0",model_name="m"} 12.0
vllm:inter_token_latency_seconds_sum{engine="0",model_name="m"} 0.5
`;

it('reads what a vLLM tells at /metrics, and nothing where there is none', async () => {
  const answers: Record<string, string> = { '/vllm/metrics': TEXT, '/other/metrics': 'up 1\n' };
  const server = createServer((request, response) => {
    const answer = answers[request.url!];
    response.writeHead(answer === undefined ? 404 : 200).end(answer);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const root = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const { signal } = new AbortController();
  assert.deepEqual(await readVllmMetrics(`${root}/vllm`, signal), {
    running: 7,
    waiting: 2,
    kvUsage: 0.5,
    preemptions: 1,
    draftTokens: 0,
    acceptedTokens: 0,
    ttftSumS: 0.25,
    ttftCount: 4,
    itlSumS: 0.5,
    itlCount: 12,
  });
  assert.equal(await readVllmMetrics(`${root}/other`, signal), null);
  assert.equal(await readVllmMetrics(`${root}/none`, signal), null);
  server.close();
  await once(server, 'close');
  assert.equal(await readVllmMetrics(`${root}/vllm`, signal), null);
});
