import assert from 'node:assert/strict';
import { it } from 'node:test';
import { fieldNamed, firstFrame, observed } from './frame.ts';

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
