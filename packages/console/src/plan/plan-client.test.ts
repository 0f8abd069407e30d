import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { exampleTrace, linesOf, type Plan, paretoFront } from './plan-client.ts';

const plan = (profile: string, usd_per_hour: number, ttft_p99_ms: number) =>
  ({ profile, usd_per_hour, ttft_p99_ms }) as Plan;

describe('the front of plans', () => {
  it('leaves out what costs more and is no faster', () => {
    const plans = [
      plan('d', 9, 300),
      plan('b', 4, 400),
      plan('a', 2, 900),
      plan('c', 4, 500),
      plan('e', 8, 100),
    ];
    assert.deepEqual(
      paretoFront(plans).map(({ profile }) => profile),
      ['a', 'b', 'e'],
    );
    assert.deepEqual(paretoFront([]), []);
  });
});

describe('the lines of an answer', () => {
  it('are whole however the bytes come, in any script', async () => {
    const bytes = new TextEncoder().encode('{"a":1}\n\n{"b":"é"}\n{"c":3}');
    const stream = new ReadableStream<Uint8Array>({
      start(controller) {
        for (const byte of bytes) controller.enqueue(Uint8Array.of(byte));
        controller.close();
      },
    });
    const lines: string[] = [];
    for await (const line of linesOf(stream)) lines.push(line);
    assert.deepEqual(lines, ['{"a":1}', '{"b":"é"}', '{"c":3}']);
  });
});

describe('the example', () => {
  it('is the same each time, in order, about four requests a second', () => {
    const [header, ...rows] = exampleTrace().trim().split('\n');
    assert.equal(header, 'arrival_s,input_tokens,output_tokens');
    const arrivals = rows.map((row) => Number(row.split(',')[0]));
    assert.ok(arrivals.every((at, i) => i === 0 || at >= arrivals[i - 1]));
    assert.ok(Math.abs(rows.length / arrivals.at(-1)! - 4) < 0.4);
    assert.equal(exampleTrace(), exampleTrace());
  });
});
