import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { chartsOfSchema } from '../lazy/further-charts.ts';
import { type Frame, firstFrame, nextFrame } from '../state/frame.ts';
import { rewardParts } from './charts.ts';
import { narrate } from './narration.ts';

const START = firstFrame({ observation: {}, reward: null, done: false, metadata: {} });
const window = (reward: number, reward_components: Record<string, number>) =>
  nextFrame(START, { observation: {}, action: {}, reward, done: false, metadata: { reward_components } });
const task = {
  id: 1,
  name: '',
  difficulty: 'easy',
  description: '',
  reward_weights: { alpha: 0.4, beta: 0.25, gamma: 0.25, delta: 0.1 },
} as const;

it('parts that add up to the reward are shown as they are', () => {
  assert.deepEqual(rewardParts(window(0.3, { slo: 0.5, memory: -0.2 }), undefined), {
    slo: 0.5,
    memory: -0.2,
  });
});

it('terms are weighed with the weights of the task', () => {
  const terms = { throughput: 1, latency: 0.4, violations: 0.2, cost: 0.5 };
  const parts = rewardParts(window(0.4 - 0.1 - 0.05 - 0.05, terms), task);
  assert.deepEqual(
    Object.values(parts).map((part) => Number(part.toFixed(9))),
    [0.4, -0.1, -0.05, -0.05],
  );
});

it('parts of a reward that was held at its bound are shown too', () => {
  const terms = { throughput: 0, latency: 2, violations: 5, cost: 2 };
  assert.equal(Object.keys(rewardParts(window(-1, terms), task)).length, 4);
});

it('parts that do not add up to the reward are not shown', () => {
  assert.deepEqual(rewardParts(window(0.9, { slo: 0.5, memory: -0.2 }), undefined), {});
});

interface Window {
  readonly observation?: Record<string, number>;
  readonly metadata?: Record<string, unknown>;
  readonly action?: Record<string, unknown>;
  readonly done?: boolean;
}

/** A quiet window with what `given` changes. */
function windowAfter(previous: Frame, given: Window): Frame {
  return nextFrame(previous, {
    observation: {
      queue_depth: 0,
      active_requests: 10,
      kv_cache_occupancy: 0.4,
      p99_ttft_ms: 120,
      p50_itl_ms: 20,
      slo_compliance_rate: 1,
      eviction_events: 0,
      ...given.observation,
    },
    action: { batch_cap: 32, ...given.action },
    metadata: { slo: { interactive: { ttft_ms: 500, tpot_ms: 50 } }, ...given.metadata },
    reward: 0.25,
    done: given.done === true,
  });
}

function said(
  given: Window,
  before: Window = {},
): [severity: string | undefined, headline: string | undefined] {
  const previous = windowAfter(START, before);
  const narration = narrate(windowAfter(previous, given), previous);
  return [narration?.severity, narration?.headline];
}

describe('the narration', () => {
  it('invites to play before the first window', () => {
    assert.equal(narrate(START, undefined)?.headline, 'Ready.');
  });

  it('is calm while the server keeps up', () => {
    assert.deepEqual(said({}), ['calm', 'Keeping up.']);
  });

  it('sees that the batch cap holds the queue', () => {
    assert.deepEqual(said({ observation: { queue_depth: 90, active_requests: 32 } }), [
      'failing',
      'The batch is full.',
    ]);
  });

  it('compares the cap with the batch of each GPU', () => {
    const crowd = { queue_depth: 90, active_requests: 40 };
    const gpus = (...running: number[]) => ({
      observation: crowd,
      metadata: { gpus: running.map((n) => ({ running: n })) },
    });
    assert.deepEqual(said(gpus(20, 20)), ['failing', 'Falling behind.']);
    assert.deepEqual(said(gpus(8, 32)), ['failing', 'The batch is full.']);
  });

  it('sees that KV memory holds the queue when the cap would allow more', () => {
    const full = { observation: { queue_depth: 90, active_requests: 20, kv_cache_occupancy: 0.99 } };
    assert.deepEqual(said(full), ['failing', 'No KV memory left.']);
  });

  it('sees a queue that shrinks', () => {
    const before = { observation: { queue_depth: 90 } };
    assert.deepEqual(said({ observation: { queue_depth: 60 } }, before), ['strained', 'Catching up.']);
  });

  it('puts preemptions before the queue, and a crash before both', () => {
    const crowded = { queue_depth: 90, eviction_events: 4 };
    assert.deepEqual(said({ observation: crowded }), ['failing', 'KV memory is full.']);
    const crash = { observation: crowded, metadata: { events: [{ kind: 'oom' }] } };
    assert.deepEqual(said(crash), ['failing', 'Out of memory.']);
  });

  it('sees slow writing and late starts without a queue', () => {
    assert.deepEqual(said({ observation: { p50_itl_ms: 80 } }), ['strained', 'Slow writing.']);
    assert.deepEqual(said({ observation: { p99_ttft_ms: 2000, slo_compliance_rate: 0.6 } }), [
      'strained',
      'Late starts.',
    ]);
  });

  it('is never calm while many requests are late', () => {
    assert.deepEqual(said({ observation: { slo_compliance_rate: 0.4 } }), ['strained', 'Late answers.']);
  });

  it('sums the rewards up at the end', () => {
    const previous = windowAfter(START, {});
    const end = narrate(windowAfter(previous, { done: true }), previous);
    assert.match(end?.detail ?? '', /2 windows add up to \+0\.50/);
  });

  it('stays silent where the server tells no queue', () => {
    assert.equal(
      narrate(nextFrame(START, { observation: {}, action: {}, metadata: {}, reward: 0, done: false }), START),
      undefined,
    );
  });
});

const schema = {
  properties: {
    total: { type: 'integer', description: 'So far' },
    share: { type: 'number' },
    hint: { enum: ['start', 'higher', 'found'] },
    open: { type: 'boolean' },
    note: { type: 'string' },
    step_index: { type: 'integer' },
  },
};
const first = firstFrame({
  observation: { total: 4, share: null, hint: 'found', open: true },
  reward: null,
  done: false,
  metadata: {},
});

it('there is a chart for each number, choice and boolean, but for those shown elsewhere', () => {
  const ids = (shown: string[]) => chartsOfSchema(schema, new Set(shown)).map(({ id }) => id);
  assert.deepEqual(ids([]), ['total', 'share', 'hint', 'open']);
  assert.deepEqual(ids(['total']), ['share', 'hint', 'open']);
});

it('choices are drawn as levels with their names', () => {
  const [, , hint] = chartsOfSchema(schema, new Set());
  assert.equal(hint.compared.value(first), 2);
  assert.equal(hint.compared.format(2), 'found');
  assert.equal(hint.tick(1), 'higher');
});

it('a number that is missing in a window leaves a gap', () => {
  const [, share] = chartsOfSchema(schema, new Set());
  assert.equal(share.compared.value(first), null);
});
