import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { deserialize, serialize } from 'node:v8';
import { RandomStream, type Trace } from '@servegym/simulator';
import { joinTraffic, requestRate, someBlocks, splitTrace, type Traffic } from './traffic.ts';

/** Request i has i + 1 prompt tokens and the hashes 2i and 2i + 1, so that one can tell where it has gone. */
function traceOf(requests: number, hasPrefixes: boolean): Trace {
  const random = new RandomStream(1, 'trace');
  const arrivalMs = new Float64Array(requests);
  for (let i = 1; i < requests; i += 1) arrivalMs[i] = arrivalMs[i - 1] + random.exponential(100);
  return {
    source: 'x.csv',
    arrivalMs,
    inputTokens: Int32Array.from(arrivalMs, (_, i) => i + 1),
    outputTokens: Int32Array.from(arrivalMs, (_, i) => 1 + (i % 50)),
    ...(hasPrefixes && {
      prefixBlocks: {
        blockTokens: 16,
        ids: Float64Array.from({ length: 2 * requests }, (_, i) => i),
        offsets: Int32Array.from({ length: requests + 1 }, (_, i) => 2 * i),
      },
    }),
  };
}

describe('the traffic to tune on', () => {
  it('is one half of the trace, and the other is held out', () => {
    const trace = traceOf(4000, true);
    const { search, heldOut } = splitTrace(trace, 100_000);
    const all = [...search.trace.inputTokens, ...heldOut.trace.inputTokens].toSorted((a, b) => a - b);
    assert.deepEqual(all, [...trace.inputTokens]);
    for (const traffic of [search, heldOut]) {
      const { arrivalMs, inputTokens, prefixBlocks } = traffic.trace;
      assert.equal(traffic.blockStarts.length, 21);
      assert.deepEqual(arrivalMs, arrivalMs.toSorted());
      for (const [i, tokens] of inputTokens.entries()) {
        const own = prefixBlocks!.ids.subarray(prefixBlocks!.offsets[i], prefixBlocks!.offsets[i + 1]);
        assert.deepEqual([...own], [2 * (tokens - 1), 2 * (tokens - 1) + 1]);
      }
      assert.ok(Math.abs(requestRate(traffic) - 10) < 1, `${requestRate(traffic)}`);
    }
  });

  it('is thinned evenly where a trace is long, without changing its rate', () => {
    const { search } = splitTrace(traceOf(40_000, false), 4000);
    assert.equal(search.trace.arrivalMs.length, 2000);
    assert.ok(search.trace.inputTokens.at(-1)! > 37_000);
    assert.ok(Math.abs(requestRate(search) - 10) < 1);
    assert.equal(someBlocks(search, 3).trace.arrivalMs.length, 300);
    assert.ok(Math.abs(requestRate(someBlocks(search, 3)) - 10) < 2);
  });

  it('is taken in part up to its busiest stretch, but evenly over time with requests in flight', () => {
    const trace = traceOf(4000, false);
    // The last tenth comes five times as fast.
    const arrivalMs = trace.arrivalMs.map((ms, i) =>
      i < 3600 ? ms : trace.arrivalMs[3600] + (ms - trace.arrivalMs[3600]) / 5,
    );
    const even = {
      ...trace,
      inputTokens: new Int32Array(4000).fill(100),
      outputTokens: new Int32Array(4000).fill(10),
    };
    const { search } = splitTrace({ ...even, arrivalMs }, 4000);
    const [first, last] = [2, 4].map((count) => requestRate(someBlocks(search, count)));
    assert.ok(first > 1.4 * 10 && last > 1.2 * 10, `${first} ${last}`);
    const closed = someBlocks({ ...search, concurrency: 3 }, 2);
    assert.equal(closed.blockStarts.length, 3);
  });

  it('keeps its conversations and how many are in flight, in parts and as bytes', () => {
    const open = traceOf(800, false);
    const followUps = {
      previous: Int32Array.from({ length: 800 }, (_, i) => (i % 4 === 0 ? -1 : i - 1)),
      thinkMs: Float64Array.from({ length: 800 }, (_, i) => (i % 4 === 0 ? 0 : i)),
    };
    const search = { ...splitTrace({ ...open, followUps }, 800).search, concurrency: 7 };
    for (const traffic of [
      someBlocks(search, 3),
      joinTraffic([search, search]),
      deserialize(serialize(search)) as Traffic,
    ]) {
      assert.equal(traffic.concurrency, 7);
      const { previous, thinkMs } = traffic.trace.followUps!;
      assert.deepEqual(previous.slice(0, 6), Int32Array.of(-1, 0, 1, 2, -1, 4));
      assert.ok(previous.every((at, i) => at === -1 || (at === i - 1 && thinkMs[i] > 0)));
    }
  });

  it('comes back from bytes as it was', () => {
    for (const hasPrefixes of [true, false]) {
      const trace = traceOf(600, hasPrefixes);
      const classes = hasPrefixes ? Uint8Array.from(trace.inputTokens, (tokens) => tokens % 3) : undefined;
      const { search, heldOut } = splitTrace(trace, 600, classes);
      const whole = joinTraffic([search, heldOut]);
      assert.deepEqual(deserialize(serialize(whole)), whole);
      assert.deepEqual(
        whole.priorities,
        hasPrefixes ? Uint8Array.from(whole.trace.inputTokens, (tokens) => tokens % 3) : undefined,
      );
    }
  });

  it('is refused when there is too little of it', () => {
    assert.throws(() => splitTrace(traceOf(100, false), 1000), {
      name: 'TuningError',
      message: /at least 200/,
    });
  });
});
