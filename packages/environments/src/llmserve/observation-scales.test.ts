import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { toJsonSchema } from '@servegym/openenv';
import fc from 'fast-check';
import { normalizeObservation, OBSERVATION_SCALES, OBSERVED_FIGURES } from './observation-scales.ts';
import { anyAction } from './random-actions.fixture.ts';
import { serveObservationSchema, TASK_IDS } from './schema.ts';
import { ServeEpisode } from './serve-episode.ts';
import { SERVE_TASKS } from './tasks/serve-tasks.ts';

describe('the scales of the observation', () => {
  it('stand in the schema, beside every figure', () => {
    const { properties } = toJsonSchema(serveObservationSchema, 'output');
    for (const [name, property] of Object.entries(properties ?? {})) {
      if (name === 'task_id' || name === 'step_index') continue;
      const { normalization } = property as { normalization?: unknown };
      assert.deepEqual(normalization, OBSERVATION_SCALES[name as keyof typeof OBSERVATION_SCALES], name);
    }
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
