import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { stripVTControlCharacters } from 'node:util';
import { type LogFormat, type LogLevel, serverLog } from './server-log.ts';

/** Text that a log writes of three entries, an error among them. */
function written(format: LogFormat, level: LogLevel): string[] {
  const lines: string[] = [];
  const log = serverLog({ format, level, write: (line) => lines.push(stripVTControlCharacters(line)) });
  log.info({ path: '/ws', seconds: 1.5 }, 'socket closed');
  log.warn({ code: 'ORIGIN_REFUSED', origin: 'https://a.b\n23:59:59 info all is well' }, 'refused');
  log.error({ err: new Error('boom') }, 'request failed');
  return lines;
}

describe('the log of the server', () => {
  it('tells no less than its level, and nothing when it is silent', () => {
    assert.deepEqual(
      (['info', 'warn', 'error'] as const).map((level) => written('json', level).length),
      [3, 2, 1],
    );
    assert.deepEqual(written('silent', 'info'), []);
  });

  it('writes entries as JSON, a line each, with the stack of an error', () => {
    const lines = written('json', 'info');
    assert.ok(lines.every((line) => line.indexOf('\n') === line.length - 1));
    const [closed, , failed] = lines.map((line) => JSON.parse(line));
    assert.deepEqual(
      [closed.level, closed.msg, closed.path, closed.seconds],
      ['info', 'socket closed', '/ws', 1.5],
    );
    assert.equal(closed.time, new Date(closed.time).toISOString());
    assert.match(failed.err.stack, /^Error: boom\n +at /);
  });

  it('writes entries for people to read; what comes from outside cannot look like an entry', () => {
    const [closed, refused, failed] = written('pretty', 'info');
    assert.match(closed!, /^\d\d:\d\d:\d\d info {2}socket closed path=\/ws seconds=1\.5\n$/);
    assert.match(refused!, /^\S+ warn {2}refused code=ORIGIN_REFUSED origin="https:\/\/a\.b\\n23.*\n$/);
    assert.match(failed!, /^\S+ error request failed\n {2}Error: boom\n +at /);
  });
});
