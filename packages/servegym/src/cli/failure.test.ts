import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { decodeGymTable, loadGymPolicy, loadTrainedPolicy } from '@servegym/agents';
import { JobFailedError } from '@servegym/jobs';
import { EnvironmentError } from '@servegym/openenv/definition';
import { TuningError } from '@servegym/tuning';
import { exitCodeOf, failureMessage } from './failure.ts';

const told = (error: unknown) => [exitCodeOf(error), failureMessage(error)];

describe('a failure of a command', () => {
  it('is bad input where the error says so, whatever its class is called', () => {
    const own = Object.assign(new Error('Expected a seed.'), { name: 'LaterError', isInputError: true });
    for (const error of [own, new EnvironmentError('A', 'Expected a seed.')])
      assert.deepEqual(told(error), [2, 'Expected a seed.']);
    assert.deepEqual(told(new TuningError('INVALID_SLO', 'Expected an SLO.')), [2, 'Expected an SLO.']);
  });

  it('is bad input where a file holds no policy or no table, whatever reads it', async () => {
    const file = new TextEncoder().encode('{"environment": "other"}');
    for (const [read, expected] of [
      [loadTrainedPolicy, 'Expected a policy for the environment llmserve, got other: train it anew'],
      [loadGymPolicy, 'Expected a header of 8030597'],
      [decodeGymTable, 'Expected a Parquet file'],
    ] as const) {
      const error = await (async () => read(file))().catch((thrown) => thrown);
      const [code, message] = told(error);
      assert.equal(code, 2);
      assert.ok(String(message).startsWith(expected), String(message));
    }
  });

  it('is bad input where a job was given it', () => {
    const failure = { name: 'LaterError', message: 'Expected a seed.' };
    const message = 'A `play` job failed: Expected a seed.';
    assert.deepEqual(told(new JobFailedError('play', { ...failure, isInputError: true })), [2, message]);
    assert.deepEqual(told(new JobFailedError('play', failure)), [1, `internal failure: ${message}`]);
  });

  it('is internal otherwise, also with a name that input errors have', () => {
    const error = Object.assign(new Error('broken'), { name: 'InputError', code: 'ENOENT' });
    assert.deepEqual(told(error), [1, 'internal failure: broken']);
    assert.deepEqual(told('text'), [1, 'internal failure: text']);
  });
});
