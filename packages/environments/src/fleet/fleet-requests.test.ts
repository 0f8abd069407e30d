import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TICKS_PER_S } from '@servegym/simulator';
import { FleetEpisode } from './fleet-episode.ts';
import { traceFleetRequests } from './fleet-requests.ts';
import { FLEET_TASKS } from './fleet-task.ts';

test('a trace keeps its conversations and shared prompts', () => {
  const requests = traceFleetRequests({
    source: 'test',
    arrivalMs: Float64Array.of(0, 2000, 9000, 9500),
    inputTokens: Int32Array.of(130, 600, 300, 300),
    outputTokens: Int32Array.of(20, 20, 20, 20),
    prefixBlocks: {
      blockTokens: 64,
      ids: Float64Array.of(1, 2, 7, 1, 2, 3, 1, 2, 4),
      offsets: Int32Array.of(0, 2, 3, 6, 9),
    },
    // Two requests follow the first answer: the second of them arrives as recorded.
    followUps: { previous: Int32Array.of(-1, -1, 0, 0), thinkMs: Float64Array.of(0, 0, 4000, 5000) },
  });
  assert.deepEqual([...requests.starts], [0, 1, 3]);
  assert.deepEqual([...requests.startTicks], [0, 2 * TICKS_PER_S, 9.5 * TICKS_PER_S]);
  assert.equal(requests.nextTurn[0], 2);
  assert.equal(requests.thinkTicks[2], 4 * TICKS_PER_S);
  const task = { ...FLEET_TASKS.diurnal, windows: 1 };
  const episode = new FleetEpisode(task, 1, requests);
  while (!episode.done) episode.step({ ...task.defaultAction, replicas: 1 });
  assert.equal(episode.totals.completed, 4);
  assert.equal(episode.fleet.counters().cachedTokens, 2 * 128);
});
