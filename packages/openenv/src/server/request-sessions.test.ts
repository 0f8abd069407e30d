import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LatestSessions } from './request-sessions.ts';

test('the caller that was longest away is forgotten first, beyond 10,000 callers', () => {
  const latest = new LatestSessions();
  for (let i = 0; i < 10_000; i++) latest.set(`caller ${i}`, `session ${i}`);
  assert.equal(latest.get('caller 0'), 'session 0');
  latest.set('caller 1', 'another session');
  latest.set('new caller', 'new session');
  assert.equal(latest.get('caller 2'), undefined);
  assert.equal(latest.get('caller 0'), 'session 0');
  assert.equal(latest.get('caller 1'), 'another session');
  latest.set('newer caller', 'newer session');
  assert.equal(latest.get('caller 3'), undefined);
  assert.equal(latest.get('new caller'), 'new session');
});
