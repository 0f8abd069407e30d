import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import { describe, it, type TestContext } from 'node:test';
import { stopOnSignals } from './listening.ts';

/** A server that stops when the test says so, and signals that reach it alone. */
function stopping(t: TestContext, { heldSessions = 2, graceMs = 5000 } = {}) {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const calls: string[] = [];
  const said: string[] = [];
  const signals = new EventEmitter();
  const drained = Promise.withResolvers<void>();
  const server = {
    heldSessions: () => heldSessions,
    drain(options: { graceMs: number }) {
      calls.push(`drain ${options.graceMs}`);
      return drained.promise;
    },
    close() {
      calls.push('close');
      drained.resolve();
      return drained.promise;
    },
  };
  const stopped = stopOnSignals(server, { graceMs, say: (message) => said.push(message), signals });
  return { calls, said, signals, drained, stopped };
}

describe('the signals that stop a server', () => {
  it('drain it, and tell how many sessions are waited for', async (t) => {
    const { calls, said, signals, drained, stopped } = stopping(t);
    signals.emit('SIGTERM');
    assert.deepEqual(calls, ['drain 5000']);
    assert.match(said.join(), /waiting up to 5 s for 2 sessions to end/);
    drained.resolve();
    await stopped;
  });

  it('say nothing when there is nobody to wait for', (t) => {
    for (const nobody of [{ heldSessions: 0 }, { graceMs: 0 }]) {
      const { said, signals } = stopping(t, nobody);
      signals.emit('SIGINT');
      assert.deepEqual(said, []);
      t.mock.timers.reset();
    }
  });

  it('are one when they come together, and close the server at once when they come again', async (t) => {
    const { calls, signals, stopped } = stopping(t);
    signals.emit('SIGINT');
    t.mock.timers.tick(499);
    signals.emit('SIGTERM');
    assert.deepEqual(calls, ['drain 5000']);
    t.mock.timers.tick(1);
    signals.emit('SIGINT');
    signals.emit('SIGINT');
    assert.deepEqual(calls, ['drain 5000', 'close']);
    await stopped;
  });

  it('are left to the system from the third on', (t) => {
    const { signals } = stopping(t);
    for (let press = 0; press < 2; press++) {
      assert.equal(signals.listenerCount('SIGINT'), 1);
      signals.emit('SIGINT');
      t.mock.timers.tick(500);
    }
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) assert.equal(signals.listenerCount(signal), 0);
  });

  it('do not hide that the server could not be stopped', async (t) => {
    const { signals, drained, stopped } = stopping(t);
    signals.emit('SIGTERM');
    drained.reject(new Error('the disk is full'));
    await assert.rejects(stopped, /the disk is full/);
  });
});
