import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { fieldNamed, firstFrame, observed, readTelemetry } from './frame.ts';

const frame = (observation: Record<string, unknown>) =>
  firstFrame({ observation, reward: null, done: false, metadata: {} });

it('a quantity is found by its own name or by the one that another environment has for it', () => {
  assert.equal(observed(frame({ request_arrival_rate: 3 }), 'request_arrival_rate'), 3);
  assert.equal(observed(frame({ arrival_rate: 4 }), 'request_arrival_rate'), 4);
  assert.equal(fieldNamed({ ttft_p50: 1 }, 'p50_ttft_ms'), 'ttft_p50');
});

it('the share inside the SLO is told where only the share outside is observed', () => {
  assert.equal(observed(frame({ slo_violation_rate: 0.25 }), 'slo_compliance_rate'), 0.75);
});

it('what the observation leaves out is found among the metrics of the window', () => {
  const metadata = { metrics: { tokens_per_sec: 900 } };
  const window = firstFrame({ observation: {}, reward: null, done: false, metadata });
  assert.equal(observed(window, 'throughput_tps'), 900);
  assert.equal(observed(window, 'p99_ttft_ms'), undefined);
});

it('what is not a finite number is not told', () => {
  assert.equal(observed(frame({ queue_depth: 'many' }), 'queue_depth'), undefined);
  assert.equal(observed(frame({}), 'queue_depth'), undefined);
});

describe('telemetry', () => {
  it('is read from the metadata of a step', () => {
    const telemetry = readTelemetry({
      window_s: 5,
      phase: 'burst',
      slo: { interactive: { ttft_ms: 500, tpot_ms: 50 }, batch: {} },
      reward_components: { throughput: 0.4, cost: -0.1 },
      classes: [{ name: 'interactive', waiting: 3, running: 2, kv_blocks: 9, slo_compliance: 0.5 }],
      gpus: [
        {
          role: 'prefill',
          kv_blocks_used: 10,
          kv_blocks_total: 40,
          memory_gib: { weights: 16, kv_pool: 12, overhead: 3, draft: 0, tenant: 4, limit: 40 },
          reloading: true,
        },
      ],
      events: [{ kind: 'oom', at_s: 12.5 }],
    });
    assert.equal(telemetry.windowSeconds, 5);
    assert.deepEqual(telemetry.slo[0], { name: 'interactive', ttftMs: 500, tpotMs: 50 });
    assert.equal(telemetry.classes[0].sloCompliance, 0.5);
    assert.equal(telemetry.gpus[0].memory?.kvPool, 12);
    assert.equal(telemetry.gpus[0].reloading, true);
    assert.deepEqual(telemetry.events, [{ kind: 'oom', atSeconds: 12.5 }]);
  });

  it('is empty, never broken, whatever a server sends', () => {
    const part = fc.anything();
    const metadata = fc.record(
      {
        window_s: part,
        phase: part,
        slo: part,
        reward_components: part,
        classes: part,
        gpus: part,
        events: part,
      },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(metadata, (given) => {
        const telemetry = readTelemetry(given);
        assert.ok(telemetry.windowSeconds === undefined || Number.isFinite(telemetry.windowSeconds));
        for (const value of Object.values(telemetry.rewardParts)) assert.ok(Number.isFinite(value));
        for (const gpu of telemetry.gpus) assert.ok(Number.isFinite(gpu.kvBlocksUsed));
      }),
    );
  });
});
