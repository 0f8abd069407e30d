import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ApiError } from '../api/api-error.ts';
import { createConsoleState } from './console-state.ts';
import { choices, fakeServer, settled } from './fake-server.fixture.ts';

describe('the page', () => {
  it('asks for a token where the server wants one, and goes on with it', async () => {
    const { client, failWith, asked } = fakeServer();
    const state = createConsoleState(client);
    failWith(new ApiError('refused', 401, 'Expected a token'));
    await state.connect(choices(), false);
    assert.equal(state.needsToken.value, true);
    assert.equal(state.problem.value, undefined);
    failWith(undefined);
    state.enterToken('open-sesame');
    await settled();
    assert.ok(asked.includes('authorize open-sesame'));
    assert.equal(state.frames.value.length, 1);
  });
});
