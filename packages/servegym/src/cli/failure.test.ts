import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { describe, it, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { AGENTS, decodeGymTable } from '@servegym/agents';
import { JobError } from '@servegym/jobs';
import { EnvironmentError } from '@servegym/openenv/definition';
import { TuningError } from '@servegym/operators';
import { EXIT_STATUS, exitCodeOf, failureMessage, InputError, OLDEST_NODE, requireNode } from './failure.ts';

const told = (error: unknown) => [exitCodeOf(error), failureMessage(error)];

describe('a failure of a command', () => {
  it('is bad input where the error says so, whatever its class is called', () => {
    const own = Object.assign(new Error('Expected a seed.'), { name: 'LaterError', isInputError: true });
    assert.deepEqual(told(own), [2, 'Expected a seed.']);
    for (const [error, message] of [
      [new EnvironmentError('BAD_SEED', 'Expected a seed.'), 'Expected a seed. (code: BAD_SEED)'],
      [new TuningError('INVALID_SLO', 'Expected an SLO.'), 'Expected an SLO. (code: INVALID_SLO)'],
    ] as const)
      assert.deepEqual(told(error), [2, message]);
  });

  it('keeps the code of what it was made from, says each code once, and none of the operating system', () => {
    const cause = new TuningError('INVALID_SLO', 'Expected an SLO.');
    const missing = Object.assign(new Error('no such file'), { code: 'ENOENT' });
    for (const [error, message] of [
      [
        new InputError('slo.txt: Expected an SLO.', { cause }),
        'slo.txt: Expected an SLO. (code: INVALID_SLO)',
      ],
      [
        new InputError('slo.txt: no such file', { cause: missing }),
        'slo.txt: no such file (code: INVALID_COMMAND_LINE)',
      ],
      [
        new InputError('slo.txt: no such file', { code: 'FILE_UNREADABLE', cause }),
        'slo.txt: no such file (code: FILE_UNREADABLE)',
      ],
      [new EnvironmentError('BAD_SEED', 'BAD_SEED: expected one.'), 'BAD_SEED: expected one.'],
    ] as const)
      assert.deepEqual(told(error), [2, message]);
  });

  it('has an exit status that the documents list', () => {
    const docs = readFileSync(new URL('../../../../docs/troubleshooting.md', import.meta.url), 'utf8');
    const [, table = ''] = /## Exit status([^#]*)/.exec(docs) ?? [];
    const listed = [...table.matchAll(/^\| (\d+) /gm)].map(([, status]) => Number(status));
    assert.deepEqual(listed.slice(0, 5), Object.values(EXIT_STATUS));
  });

  it('is bad input where a file holds no policy or no table, whatever reads it', async () => {
    const file = new TextEncoder().encode('{"environment": "other"}');
    for (const [read, expected] of [
      [
        AGENTS.llmserve.loadPolicy,
        'Expected a policy for the environment llmserve, got other: train it anew',
      ],
      [AGENTS.inferencegym.loadPolicy, 'Expected a header of 8030597'],
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
    assert.deepEqual(told(JobError.failed('play', { ...failure, isInputError: true })), [2, message]);
    const coded = { ...failure, code: 'BAD_SEED', isInputError: true };
    assert.deepEqual(told(JobError.failed('play', coded)), [2, `${message} (code: BAD_SEED)`]);
    assert.deepEqual(told(JobError.failed('play', failure)), [70, `internal failure: ${message}`]);
  });

  it('is internal otherwise, also with a name that input errors have', () => {
    const error = Object.assign(new Error('broken'), { name: 'InputError', code: 'ENOENT' });
    assert.deepEqual(told(error), [70, 'internal failure: broken']);
    assert.deepEqual(told('text'), [70, 'internal failure: text']);
  });
});

const program = fileURLToPath(new URL('../main.ts', import.meta.url));

function servegym(...args: string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [program, ...args], { encoding: 'utf8' });
  return { status, output: stdout + stderr };
}

test('no command prints the password of a URL that it is given', () => {
  for (const args of [
    ['serve', '--port', '0', '--store', 'postgres://me:hunter2@127.0.0.1:1/db'],
    ['serve', '--port', '0', '--store', 'redis://:hunter2@127.0.0.1:1'],
    ['worker', '--queue', 'redis://:hunter2@127.0.0.1:1'],
    ['worker', '--queue', 'amqp://me:hunter2@127.0.0.1:1'],
    ['validate', '--url', 'http://me:hunter2@127.0.0.1:1'],
  ]) {
    const { status, output } = servegym(...args);
    assert.notEqual(status, 0, args.join(' '));
    assert.match(output, /\*\*\*@127\.0\.0\.1:1/, args.join(' '));
    assert.doesNotMatch(output, /hunter2/, args.join(' '));
  }
});

test('a store of an unknown kind is refused, and no folder of its name is made', () => {
  const { status, output } = servegym('serve', '--port', '0', '--store', 'postgres://host/db');
  assert.equal(status, 2);
  assert.match(output, /Expected --store or SERVEGYM_STORE to be a file, redis:\/\//);
});

test('a Node that is too old is named before anything fails on it', () => {
  // `engines` of this package is the one place; Python has a copy, and packed packages get it.
  const root = new URL('../../../../', import.meta.url);
  const read = (path: string) => readFileSync(new URL(path, root), 'utf8');
  const python = `OLDEST_NODE = (${OLDEST_NODE.replace('.', ', ')})\n`;
  assert.ok(read('clients/python/src/servegym/local_server.py').includes(python));
  for (const name of ['simulator', 'openenv', 'agents'])
    assert.doesNotMatch(read(`packages/${name}/package.json`), /engines/);
  for (const version of ['22.18.0', '22.100.0', '24.0.0', '100.0.0']) requireNode(version);
  for (const version of ['9.1.0', '20.20.2', '22.2.0', '22.17.1']) {
    assert.throws(() => requireNode(version), {
      code: 'NODE_TOO_OLD',
      message: new RegExp(`22.18 .*${version}`),
    });
  }
});
