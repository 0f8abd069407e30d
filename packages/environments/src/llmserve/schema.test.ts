import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { toJsonSchema } from '@servegym/openenv';
import fc from 'fast-check';
import { anyAction } from './random-actions.fixture.ts';
import { normalizeObservation, OBSERVED_FIGURES, serveObservationSchema, TASK_IDS } from './schema.ts';
import { ServeEpisode } from './serve-episode.ts';
import { SERVE_TASKS } from './task-registry.ts';

describe('the scales of the observation', () => {
  it('stand in the schema, beside every figure', () => {
    const { properties } = toJsonSchema(serveObservationSchema, 'output');
    const scaleOf = (name: string) => (properties![name] as { normalization?: unknown }).normalization;
    for (const name of OBSERVED_FIGURES) assert.notEqual(scaleOf(name), undefined, name);
    assert.deepEqual(scaleOf('kv_cache_occupancy'), { transform: 'linear', divisor: 1 });
    assert.deepEqual(scaleOf('queue_depth'), { transform: 'log1p', divisor: 6.909 });
    assert.equal(OBSERVED_FIGURES.length + 2, Object.keys(properties ?? {}).length);
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
            for (const value of normalizeObservation(episode.observation())) {
              assert.ok(value >= 0 && value < 2.5, `${value}`);
            }
          }
        },
      ),
      { numRuns: 15 },
    );
  });
});
