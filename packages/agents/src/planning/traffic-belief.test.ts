import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { llmserve } from '@servegym/environments';
import { TrafficBelief } from './traffic-belief.ts';

const task = llmserve.tasks.shipped.adversarial_multitenant;
const SEEN = 40;

function observed(seed: number, windows = SEEN) {
  const requests = llmserve.drawRequests(task, seed);
  const belief = new TrafficBelief(task, requests);
  for (let window = 0; window < windows; window++) belief.observe();
  return { requests, belief };
}

describe('what is believed of the traffic', () => {
  it('does not depend on the windows that have not been observed', () => {
    const { requests } = observed(3);
    const other = llmserve.drawRequests(task, 4);
    const past = requests.windowStarts[SEEN];
    const from = other.windowStarts[SEEN];
    const spliced = <Values extends Float64Array | Int32Array | Uint8Array>(a: Values, b: Values): Values => {
      const all = new (a.constructor as new (length: number) => Values)(past + b.length - from);
      all.set(a.subarray(0, past));
      all.set(b.subarray(from), past);
      return all;
    };
    const windowStarts = requests.windowStarts.map((start, window) =>
      window <= SEEN ? start : past + other.windowStarts[window] - from,
    );
    const belief = new TrafficBelief(task, {
      arrivalTicks: spliced(requests.arrivalTicks, other.arrivalTicks),
      inputTokens: spliced(requests.inputTokens, other.inputTokens),
      outputTokens: spliced(requests.outputTokens, other.outputTokens),
      classes: spliced(requests.classes, other.classes),
      windowStarts,
      phases: requests.phases.map((phase, window) => (window < SEEN ? phase : other.phases[window])),
      tenantGiB: requests.tenantGiB.map((gib, window) => (window < SEEN ? gib : other.tenantGiB[window])),
    });
    for (let window = 0; window < SEEN; window++) belief.observe();
    assert.deepEqual(belief.sampleFuture(8, 1), observed(3).belief.sampleFuture(8, 1));
  });

  it('keeps what was seen, and fills the windows asked for with requests of the phases', () => {
    const { requests, belief } = observed(3);
    const future = belief.sampleFuture(8, 1);
    const past = requests.windowStarts[SEEN];
    assert.deepEqual(future.arrivalTicks.subarray(0, past), requests.arrivalTicks.subarray(0, past));
    assert.deepEqual(future.windowStarts.subarray(0, SEEN + 1), requests.windowStarts.subarray(0, SEEN + 1));
    for (let window = SEEN; window < SEEN + 8; window++) {
      assert.ok(future.windowStarts[window + 1] > future.windowStarts[window]);
    }
    for (let window = SEEN + 8; window < task.windows; window++) {
      assert.equal(future.windowStarts[window + 1], future.windowStarts[SEEN + 8]);
    }
    assert.notDeepEqual(belief.sampleFuture(8, 2), future);
  });

  it('expects the phase that is on', () => {
    for (const seed of [5, 6, 7]) {
      for (const seen of [30, 60, 90]) {
        const { requests, belief } = observed(seed, seen);
        // A phase that has just begun may end in the first window of no future: phases last for 12 windows and more.
        const on = requests.phases[seen - 1];
        const begun = requests.phases[seen - 5] === on;
        const expected = [1, 2, 3, 4, 5].map((draw) => belief.sampleFuture(1, draw).phases[seen]);
        if (!begun) continue;
        assert.ok(
          expected.filter((phase) => phase === on).length >= 3,
          `${seed} ${seen}: ${expected} not ${on}`,
        );
      }
    }
  });
});
