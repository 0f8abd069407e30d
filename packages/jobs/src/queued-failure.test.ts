import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { decodeFailure, encodeFailure } from './queued-failure.ts';

describe('the failure of a job, in the message that a queue keeps', () => {
  it('comes out as it went in, whatever its words', () => {
    const failure = fc.record(
      { name: fc.string(), message: fc.string(), code: fc.string(), isInputError: fc.constant(true) },
      { requiredKeys: ['name', 'message'] },
    );
    fc.assert(
      fc.property(failure, (told) => assert.deepEqual(decodeFailure(encodeFailure(told)), { ...told })),
    );
  });

  it('is told apart from a failure of the queue, even where both speak of a connection', () => {
    const job = { name: 'Error', message: 'connect ECONNREFUSED 127.0.0.1:9' };
    assert.deepEqual(decodeFailure(encodeFailure(job)), job);
    for (const message of [
      'Connection is closed.',
      'terminating connection due to administrator command',
      'job stalled more than allowable limit',
      '',
      'null',
      '[]',
      '{"message":"x"}',
      '{"jobFailure":null}',
      '{"jobFailure":{"name":"Error"}}',
    ]) {
      assert.equal(decodeFailure(message), null, message);
    }
  });
});
