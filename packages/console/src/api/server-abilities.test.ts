import assert from 'node:assert/strict';
import { it } from 'node:test';
import { readAbilities } from './server-abilities.ts';

it('what a server can is read from the paths and the reset of its description', () => {
  const schema = {
    properties: { seed: { type: 'integer' }, session_id: {}, task_id: {}, shift: { enum: ['rate', 'gpu'] } },
  };
  const reset = {
    post: {
      requestBody: { content: { 'application/json': { schema: { anyOf: [schema, { type: 'null' }] } } } },
    },
  };
  const { resetOptions, ...abilities } = readAbilities({
    paths: { '/reset': reset, '/episodes': {}, '/leaderboard': {} },
  });
  assert.deepEqual(abilities, { episodes: true, leaderboard: true, grader: false });
  assert.deepEqual(
    resetOptions.map(({ name, kind }) => [name, kind]),
    [['shift', 'choice']],
  );
});

it('a description without paths promises nothing', () => {
  assert.deepEqual(readAbilities({}), {
    episodes: false,
    leaderboard: false,
    grader: false,
    resetOptions: [],
  });
});
