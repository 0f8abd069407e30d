import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { findProfile } from '@servegym/profiles';
import { closedBatch, type SimulationOptions, simulateTrace } from '@servegym/simulator';
import { SERVE_TASKS } from './serve-task.ts';

/** Times as fast as FP16 without drafts, on batches of equal requests that are all there from the start. */
function speedup(
  profile: string,
  batch: number,
  tokens: number,
  settings: Partial<SimulationOptions>,
): number {
  const trace = closedBatch(batch, tokens, tokens);
  const ms = (changed: Partial<SimulationOptions>) =>
    simulateTrace(trace, { profile: findProfile(profile), maxNumSeqs: 256, ...changed }).simulatedMs;
  return ms({}) / ms(settings);
}

/** @param tolerance share of the measured figure */
function near(simulated: number, measured: number, tolerance: number): void {
  assert.ok(Math.abs(simulated / measured - 1) < tolerance, `${simulated}, measured ${measured}`);
}

describe('the server of the tasks', () => {
  for (const profile of new Set(Object.values(SERVE_TASKS).map((task) => task.profile))) {
    it(`gains by INT8 what an A100 was measured to gain (${profile})`, () => {
      // LLM-Inference-Bench, Llama-3-8B with TensorRT-LLM, 1,024 tokens in and out: INT8 weights over FP16.
      for (const [batch, measured] of [
        [1, 1.42],
        [16, 1.39],
        [64, 1.47],
      ] as const) {
        near(speedup(profile, batch, 1024, { weights: 'INT8' }), measured, 0.05);
      }
    });

    it(`gains by drafts about what is published of EAGLE with three draft tokens (${profile})`, () => {
      near(speedup(profile, 1, 256, { speculationDepth: 3 }), 1.96, 0.1);
      near(speedup(profile, 128, 256, { speculationDepth: 3 }), 1.21, 0.1);
    });
  }
});
