import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { llmserve, ServeAction } from '@servegym/environments';
import { connect } from '@servegym/openenv/client';
import {
  runServegymWith,
  type ServeProcess,
  startServeWith,
} from '../../../maintenance/test-servers/servegym.ts';
import { type EndpointProcess, startEndpointProcess } from './endpoint-process.ts';

const action: ServeAction = {
  batch_cap: 24,
  kv_budget_fraction: 0.5,
  speculation_depth: 2,
  quantization_tier: 'FP16',
  prefill_decode_split: false,
  priority_routing: true,
};

describe('llmserve in real mode', () => {
  let endpoint: EndpointProcess;
  let server: ServeProcess;
  before(async () => {
    endpoint = await startEndpointProcess('--engines', '2');
    server = await startServeWith({
      SERVEGYM_STORE: 'memory',
      LLMSERVE_MODE: 'real',
      SERVEGYM_MAX_CALLS: '1000',
      LLMSERVE_REAL_PROVIDER: 'servegym',
      LLMSERVE_REAL_BASE_URL: `${endpoint.url}/v1`,
      LLMSERVE_REAL_MAX_REQUESTS_PER_STEP: '20',
    });
  });
  after(async () => {
    await server.stop();
    await endpoint.stop();
  });

  it('plays over the wire: knobs are set at the endpoint, and what it serves is measured', async () => {
    await server.said(/^Real mode: each step sends up to 20 requests to http/m);
    await using session = await connect<typeof llmserve>(server.url);
    const { observation: first } = await session.reset({ task_id: 'static_workload', seed: 3 });
    assert.equal(first.server.engines, 2);
    const { observation, reward, metadata } = await session.step(action);
    const report = metadata as {
      not_observed: string[];
      not_applied: object;
      requests: { in_task: number };
    };
    assert.deepEqual(report.not_observed, []);
    assert.deepEqual(report.not_applied, {});
    assert.deepEqual(report.requests, {
      in_task: report.requests.in_task,
      sent: 20,
      completed: 20,
      failed: {},
      errors: {},
      retries: 0,
    });
    assert.ok(observation.gpu_memory_used_gb > 20 && observation.estimated_cost_per_1k > 0);
    assert.ok(observation.spec_acceptance_rate > 0.1 && observation.spec_acceptance_rate < 1);
    assert.ok(observation.throughput_tps > 0 && observation.p50_itl_ms > 0 && observation.p50_ttft_ms > 5);
    assert.ok(reward !== null && reward > -1 && reward <= 1);
    const { knobs } = await (await fetch(`${endpoint.url}/admin/knobs`)).json();
    assert.deepEqual(knobs, {
      max_num_seqs: 24,
      kv_budget_fraction: 0.5,
      speculation_depth: 2,
      weights: 'FP16',
      split: false,
      scheduling_policy: 'priority',
    });
    const graded = await fetch(`${server.url}/grader`, { method: 'POST', body: '{}' });
    assert.equal(graded.status, 501);
  });

  it('says at /runtime that it measures, and on which server', async () => {
    const { mode, backend, seed } = await (await fetch(`${server.url}/runtime`)).json();
    assert.deepEqual([mode, seed], ['real', null]);
    assert.deepEqual(
      [backend.mode, backend.provider, backend.max_requests_per_step],
      ['real', 'servegym', 20],
    );
    assert.doesNotMatch(JSON.stringify(backend), /http|key/i);
  });

  it('goes on with what an endpoint can do, and tells what it cannot', async () => {
    const single = await startEndpointProcess();
    const other = await startServeWith({
      SERVEGYM_STORE: 'memory',
      LLMSERVE_MODE: 'real',
      SERVEGYM_MAX_CALLS: '1000',
      LLMSERVE_REAL_PROVIDER: 'servegym',
      LLMSERVE_REAL_BASE_URL: `${single.url}/v1`,
      LLMSERVE_REAL_MAX_REQUESTS_PER_STEP: '3',
    });
    const session = await connect<typeof llmserve>(other.url);
    const { observation: unprofiled } = await session.reset({ task_id: 'bursty_workload', seed: 1 });
    const profile = 'l40s-48gb-llama-3-8b';
    const { observation: profiled } = await session.reset({ task_id: 'bursty_workload', seed: 1, profile });
    assert.deepEqual([unprofiled.server.engines, profiled.server.engines], [1, 1]);
    assert.notEqual(unprofiled.server.kv_tokens, profiled.server.kv_tokens);
    const { metadata } = await session.step({ ...action, prefill_decode_split: true });
    const { applied, not_applied } = metadata as { applied: object; not_applied: Record<string, string> };
    assert.deepEqual(Object.keys(not_applied), ['prefill_decode_split']);
    assert.match(not_applied.prefill_decode_split!, /split/);
    assert.equal(Object.keys(applied).length, 5);
    await single.stop();
    await assert.rejects(session.step(action), /REAL_SERVER_UNREACHABLE|could not be reached/);
    await session.close();
    await other.stop();
  });

  it('does not start with settings that make no sense', async () => {
    const { code, stderr } = await runServegymWith(
      { LLMSERVE_MODE: 'real', OPENAI_API_KEY: '' },
      'serve',
      '--port',
      '0',
    );
    assert.equal(code, 2);
    assert.match(stderr, /OPENAI_API_KEY/);
  });
});
