import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { toJsonSchema } from '@servegym/openenv';
import { findProfile } from '@servegym/profiles';
import fc from 'fast-check';
import type { ObservationScale } from '../feature.ts';
import { anyAction } from './random-actions.fixture.ts';
import { shiftTask } from './scenario.ts';
import { OBSERVED_FIGURES, SERVER_FEATURES, serveObservationSchema, TASK_IDS } from './schema.ts';
import { ServeEpisode } from './serve-episode.ts';
import { SERVE_TASKS, type ServeTask } from './serve-task.ts';

describe('the description of the server', () => {
  const task = SERVE_TASKS.bursty_workload;
  const describedAs = (changed: Partial<ServeTask>) =>
    new ServeEpisode({ ...task, ...changed }, 0).observation().server;

  it('tells the speed, the memory and the price of the profile', () => {
    const profile = findProfile(task.profile);
    const { law } = profile.weights.FP16!;
    const { decode_1_ms, decode_64_ms, weights_gb, kv_tokens, usd_per_hour } = describedAs({});
    const slope = (law.perDecodeSequenceUs + 1.024 * law.perContextTokenNs) / 1000;
    assert.ok(decode_64_ms - decode_1_ms > 0.9 * 63 * slope && decode_1_ms > law.weightReadUs / 1000);
    assert.ok(Math.abs(weights_gb - profile.weights.FP16!.weightGiB * 1.073741824) < 0.01);
    const pool = (kv_tokens * profile.model.kvBytesPerToken) / 1e9;
    assert.ok(pool > 15 && pool + weights_gb < 40 * 1.074, `${pool}`);
    assert.equal(usd_per_hour, profile.gpu.usdPerHour);
  });

  it('is another one for another server, and says which knobs are free', () => {
    const own = describedAs({});
    assert.deepEqual(new Set(Object.values(own.free)), new Set([true]));
    const masked = describedAs({ maskedKnobs: ['quantization_tier'] });
    assert.deepEqual(masked, { ...own, free: { ...own.free, quantization_tier: false } });
    const other = describedAs({ profile: shiftTask(task, 'other_gpu').profile });
    assert.notEqual(other.decode_64_ms, own.decode_64_ms);
    assert.equal(other.interactive_ttft_ms, own.interactive_ttft_ms);
  });

  it('has a feature for each of its figures', () => {
    const { free, ...figures } = describedAs({});
    const paths = [...Object.keys(figures), ...Object.keys(free).map((knob) => `free.${knob}`)];
    assert.deepEqual(
      SERVER_FEATURES.map(({ of }) => of),
      paths.map((path) => `server.${path}`),
    );
  });
});

describe('the scales of the observation', () => {
  const { properties } = toJsonSchema(serveObservationSchema, 'output');
  const scaleOf = (name: string) => (properties![name] as { normalization: ObservationScale }).normalization;

  it('stand in the schema, beside every figure', () => {
    for (const name of OBSERVED_FIGURES) assert.notEqual(scaleOf(name), undefined, name);
    assert.deepEqual(scaleOf('kv_cache_occupancy'), { transform: 'linear', divisor: 1 });
    assert.deepEqual(scaleOf('queue_depth'), { transform: 'log1p', divisor: 6.909 });
    assert.equal(OBSERVED_FIGURES.length + 3, Object.keys(properties ?? {}).length);
    const { free: _, ...server } = (properties!.server as { properties: Record<string, object> }).properties;
    for (const [name, figure] of Object.entries(server)) assert.ok('normalization' in figure, name);
  });

  it('give numbers from 0 to about 1, whatever is done', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...TASK_IDS),
        fc.nat(),
        fc.array(anyAction, { minLength: 1, maxLength: 8 }),
        (taskId, seed, actions) => {
          const episode = new ServeEpisode(SERVE_TASKS[taskId], seed);
          for (const action of actions) {
            episode.step(action);
            const observation = episode.observation();
            for (const name of OBSERVED_FIGURES) {
              const { transform, divisor } = scaleOf(name);
              const figure = observation[name];
              const value = (transform === 'log1p' ? Math.log1p(figure) : figure) / divisor;
              assert.ok(value >= 0 && value < 2.5, `${value}`);
            }
          }
        },
      ),
      { numRuns: 15 },
    );
  });
});
