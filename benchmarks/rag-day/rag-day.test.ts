import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { Trace } from '@servegym/simulator';
import { BLOCK_TOKENS, COPIES, chooseDay, copyDay, type Hour } from './day.ts';

const HOUR_MS = 3_600_000;

/** Two days of a request every six minutes, in conversations of two; every prompt begins with the same 256 tokens. */
const count = 480;
const recorded: Trace = {
  source: 'test',
  arrivalMs: Float64Array.from({ length: count }, (_, i) => (i * HOUR_MS) / 10),
  inputTokens: Int32Array.from({ length: count }, (_, i) => 640 + 64 * (i % 7)),
  outputTokens: Int32Array.from({ length: count }, (_, i) => 100 + (i % 5)),
  prefixBlocks: {
    blockTokens: 16,
    offsets: Int32Array.from({ length: count + 1 }, (_, i) => 40 * i),
    ids: Float64Array.from({ length: 40 * count }, (_, at) => (at % 40 < 16 ? at % 40 : at)),
  },
  followUps: {
    previous: Int32Array.from({ length: count }, (_, i) => (i % 2 === 0 ? -1 : i - 1)),
    thinkMs: new Float64Array(count),
  },
};
const hours: Hour[] = Array.from({ length: 24 }, (_, hour) => {
  const requests = COPIES * (hour < 12 ? 12 : 4);
  return { requests, inputTokens: requests * 800, outputTokens: requests * 102 };
});

it('a day has as many requests an hour as published, none twice, and nearly their tokens', () => {
  const chosen = chooseDay(recorded, hours, 1, 0);
  assert.equal(chosen.length, 12 * 16);
  assert.equal(new Set(chosen).size, chosen.length);
  const day = copyDay(recorded, chosen, hours, 4, 0);
  const first = Array.from(day.arrivalMs).filter((ms) => ms < 12 * HOUR_MS);
  assert.ok(Math.abs(first.length - 4 * 144) <= 8, `${first.length}`);
  const tokens = day.inputTokens.reduce((sum, value) => sum + value, 0) / day.inputTokens.length;
  assert.ok(Math.abs(tokens / 800 - 1) < 0.02, `${tokens}`);
});

it('copies share prompts only with themselves, and shift a conversation by half a minute at most', () => {
  const day = copyDay(recorded, chooseDay(recorded, hours, 1, 0), hours, 3, 0);
  const { ids, offsets } = day.prefixBlocks!;
  const starts = new Set(Array.from({ length: 3 * 192 }, (_, i) => ids[offsets[i]]));
  assert.equal(starts.size, 3);
  assert.equal(offsets[1] - offsets[0], 640 / BLOCK_TOKENS);
  const byTokens = Array.from(day.arrivalMs, (ms) => ms % (HOUR_MS / 10));
  // Those recorded in their hour lie about the six minutes, and the others anywhere.
  assert.ok(byTokens.some((ms) => ms > 1000 && ms < 30_000));
  assert.ok(day.arrivalMs.every((ms, i) => i === 0 || ms >= day.arrivalMs[i - 1]));
});
