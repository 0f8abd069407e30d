import assert from 'node:assert/strict';
import { test } from 'node:test';
import { collectingLogger } from '../fixtures/start-server.ts';
import { StoreMonitor } from './store-monitor.ts';

test('a store without progress is told, and its failures are logged once in ten seconds', (t) => {
  let now = 1000;
  t.mock.method(performance, 'now', () => now);
  const { logger, entries } = collectingLogger();
  const monitor = new StoreMonitor(logger);
  monitor.began();
  assert.equal(monitor.condition.problem, null);
  now += 2500;
  assert.match(monitor.condition.problem!, /1 entries of sessions have waited 2\.5 s to be written/);
  for (let failure = 0; failure < 100; failure++) {
    monitor.began();
    monitor.failed(1, 'the disk is full');
  }
  monitor.failed(1, 'the disk is full');
  assert.match(monitor.condition.problem!, /could not be written 0\.0 s ago: the disk is full/);
  assert.equal(monitor.condition.failedWrites, 101);
  assert.equal(entries.length, 1);
  now += 10_000;
  monitor.began();
  monitor.failed(1, 'the disk is full');
  assert.equal(entries.length, 2);
  monitor.began();
  monitor.written(1);
  assert.equal(monitor.condition.problem, null);
  assert.equal(entries.at(-1)?.message, 'sessions are written again');
});
