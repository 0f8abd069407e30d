import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type Frame, firstFrame, nextFrame } from '../state/frame.ts';
import { narrate } from './narration.ts';

const START = firstFrame({ observation: {}, reward: null, done: false, metadata: {} });

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
