import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { drawnTrace, linesOf } from './plan-client.ts';

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

describe('drawn traffic', () => {
  it('is the same each time, in order, at its rate', () => {
    const traffic = { perSecond: 40, inputTokens: 700, outputTokens: 150 };
    const [header, ...rows] = drawnTrace(traffic).trim().split('\n');
    assert.equal(header, 'arrival_s,input_tokens,output_tokens');
    const arrivals = rows.map((row) => Number(row.split(',')[0]));
    assert.ok(arrivals.every((at, i) => i === 0 || at >= arrivals[i - 1]));
    assert.ok(Math.abs(rows.length / arrivals.at(-1)! - 40) < 4);
    const inputs = rows.map((row) => Number(row.split(',')[1])).sort((a, b) => a - b);
    assert.ok(Math.abs(inputs[rows.length / 2] - 700) < 70);
    assert.equal(drawnTrace(traffic), drawnTrace(traffic));
  });
});
