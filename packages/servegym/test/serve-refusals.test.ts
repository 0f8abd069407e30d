import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { describe, it } from 'node:test';
import { runServegym } from '../../../maintenance/test-servers/servegym.ts';
import { runCommand } from './in-process.ts';

describe('servegym serve, when it cannot listen', () => {
  it('says that the port is taken and how to choose another', async () => {
    const other = createServer().listen(0, '127.0.0.1');
    await once(other, 'listening');
    const { port } = other.address() as AddressInfo;
    const { code, stderr } = await runServegym('serve', '--host', '127.0.0.1', '--port', String(port));
    other.close();
    assert.equal(code, 2);
    assert.match(stderr, new RegExp(`^error: Port ${port} is taken.*--port`));
    assert.doesNotMatch(stderr, /\n\s+at /, 'no stack trace');
  });

  it('refuses an address that this machine does not have', async () => {
    const { code, stderr } = await runCommand('serve', '--host', '192.0.2.1', '--port', '0');
    assert.equal(code, 2);
    assert.match(stderr, /`192\.0\.2\.1` is no address of this machine.*--host/);
  });

  it('refuses environments that are none, or twice the same', async () => {
    for (const [names, message] of [
      ['llmserve,llmserve', /whose names are different.*`llmserve` twice/s],
      ['llmserve,benchmark,benchmark', /whose names are different.*twice/s],
      ['llmserve,,benchmark', /names of environments with commas/],
      ['llmserve,nobody', /one of llmserve, fleet, inferencegym, benchmark, or a module.*`nobody`/s],
    ] as const) {
      const { code, stderr } = await runCommand('serve', '--port', '0', '--env', names);
      assert.equal(code, 2, stderr);
      assert.match(stderr, message);
    }
  });

  it('refuses a port that is no port', async () => {
    for (const port of ['http', '-1', '70000', '80.5', '']) {
      const { code, stderr } = await runCommand('serve', '--port', port);
      assert.equal(code, 2, port);
      assert.match(stderr, /Expected a whole number from 0 to 65535/, port);
    }
  });
});

describe('servegym serve, when a file or a value will not do', () => {
  it('says why sessions cannot be kept there, and what to do', async () => {
    const { code, stderr } = await runCommand('serve', '--port', '0', '--store', import.meta.filename);
    assert.equal(code, 2);
    assert.match(
      stderr,
      /^error: Sessions cannot be kept in `.*serve-refusals\.test\.ts`: file is not a database\./,
    );
    assert.match(stderr, /--store or SERVEGYM_STORE; `--store memory`/);
  });

  it('names the value and what was expected', async () => {
    for (const [option, value, expected] of [
      ['--store', '', /a file, redis:.* or `memory`/],
      ['--cors', 'https://example.com/', /without a path or a slash/],
      ['--rate-limit', 'often', /a whole number or `seed`/],
      ['--rate-limit', '0', /a whole number from 1/],
      ['--session-timeout', '0', /a number above 0/],
      ['--drain-timeout', '-1', /a whole number from 0/],
      ['--mode', 'both', /simulation, production/],
      ['--log', 'xml', /pretty, json, silent/],
      ['--log-level', 'debug', /error, warn, info/],
    ] as const) {
      const { code, stderr } = await runCommand('serve', '--port', '0', `${option}=${value}`);
      assert.equal(code, 2, option);
      assert.match(stderr, expected, option);
    }
  });
});
