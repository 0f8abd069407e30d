import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { LocalJobs } from '@servegym/jobs';
import { stoppable } from './jobs.ts';

const KINDS = { waiting: new URL('waiting-job.fixture.ts', import.meta.url).href };
const WAITING = [{ kind: 'waiting', input: null }];

describe('jobs of a command', () => {
  it('stop when the process is told to, and leave the next signal to end it', async () => {
    for (const [signal, exitCode] of [
      ['SIGINT', 130],
      ['SIGTERM', 143],
    ] as const) {
      const before = process.listenerCount(signal);
      const jobs = stoppable(new LocalJobs({ kinds: KINDS, threads: 1 }), 'told to stop');
      try {
        const run = jobs.run(WAITING, { onProgress: () => process.emit(signal, signal) });
        await assert.rejects(run, { name: 'InterruptedError', message: 'told to stop', exitCode });
        assert.equal(process.listenerCount(signal), before);
        await assert.rejects(jobs.run(WAITING), { message: 'told to stop' });
      } finally {
        await jobs.close();
      }
    }
  });

  it('stop for the caller’s own reason too, and listen to nothing once they are closed', async () => {
    const before = process.listenerCount('SIGINT');
    const jobs = stoppable(new LocalJobs({ kinds: KINDS, threads: 1 }));
    const own = new AbortController();
    const run = jobs.run(WAITING, { signal: own.signal, onProgress: () => own.abort(new Error('enough')) });
    await assert.rejects(run, /enough/);
    await jobs.close();
    assert.equal(process.listenerCount('SIGINT'), before);
  });
});
