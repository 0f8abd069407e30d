import assert from 'node:assert/strict';
import { describe, it, mock } from 'node:test';
import { drawnTrace, linesOf, Planning } from './plan-client.ts';

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

describe('a plan under way', () => {
  it('has the course of its search: what looks cheapest, by the simulations that were done', async () => {
    const search = (simulations: number, usdPerHour: number | null) => ({
      search: { simulations, best: usdPerHour && { engines: 1, usdPerHour, profile: 'a', weights: 'FP16' } },
      ...{ done: 0, of: 2 },
    });
    const lines = [search(10, null), search(40, 8), search(90, 5), { result: { plans: [] } }];
    const answers = mock.method(globalThis, 'fetch', async (url: URL | string) =>
      String(url).includes('models')
        ? Response.json({ models: [{ name: 'Llama-3-8B', gpus: ['H100-80GB'] }] })
        : new Response(lines.map((line) => JSON.stringify(line)).join('\n')),
    );
    const planning = new Planning(new URL('http://localhost/'));
    const typed = { ttftS: '1', tpotMs: '50', perSecond: '4', inputTokens: '700', outputTokens: '150' };
    await planning.start(typed);
    answers.mock.restore();
    assert.deepEqual(planning.answer.value.course, [
      [40, 8],
      [90, 5],
    ]);
    assert.equal(planning.fault.value, '');
  });
});
