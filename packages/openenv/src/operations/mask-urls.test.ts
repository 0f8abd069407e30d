import assert from 'node:assert/strict';
import { test } from 'node:test';
import { maskUrls } from './mask-urls.ts';

test('users, passwords and keys in URLs are masked', () => {
  for (const [given, masked] of [
    ['redis://:secret@host:6379/0', 'redis://***@host:6379/0'],
    ['rediss://user:p@ss@host', 'rediss://***@host'],
    ['Sessions: redis://:a/b@host:6379.', 'Sessions: redis://***@host:6379.'],
    ['`postgres://me:pw@h/db` and https://k@h/v1', '`postgres://***@h/db` and https://***@h/v1'],
    ['redis://host?password=pw&db=1', 'redis://host?password=***&db=1'],
    ['https://host/v1?api_key=abc', 'https://host/v1?api_key=***'],
    ['{"queue":"redis://:pw@h:1"}', '{"queue":"redis://***@h:1"}'],
  ] as const) {
    assert.equal(maskUrls(given), masked);
  }
});

test('URLs without secrets and other texts stay as they are', () => {
  for (const text of [
    'http://127.0.0.1:7860/web/',
    'http://[::1]:7860/@me',
    'https://example.com/@me and a@b.org',
    'ws://host:80?task=easy&seed=1',
    'C:\\sessions.db, me@host',
  ]) {
    assert.equal(maskUrls(text), text);
  }
});
