import assert from 'node:assert/strict';
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { type ServeProcess, startServe } from '../../../maintenance/test-servers/servegym.ts';
import { runCommand } from './in-process.ts';
import { python } from './python-driver.ts';

/** Starts the Python servers of this folder, in one process: it takes seconds to import OpenEnv. */
async function startReferences() {
  const program = join(import.meta.dirname, 'python', 'reference_server.py');
  const child: ChildProcess = spawn(python, [program, 'simulation', 'production'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const lines = createInterface({ input: child.stdout! });
  const failed = once(child, 'exit').then(([code]) => {
    throw new Error(`the reference servers ended with exit code ${code}`);
  });
  const [line] = (await Promise.race([once(lines, 'line'), failed])) as [string];
  failed.catch(() => {});
  const [reference, production] = line.split(' ');
  return { reference: reference!, production: production!, stop: () => child.kill('SIGKILL') };
}

/** An address where nobody listens. */
async function closedAddress(): Promise<string> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return `http://127.0.0.1:${port}`;
}

/** Reports by their arguments: each server is validated once with the same ones. */
const reports = new Map<string, ReturnType<typeof validateAnew>>();

function validate(...args: string[]) {
  const key = args.join(' ');
  const report = reports.get(key) ?? validateAnew(...args);
  reports.set(key, report);
  return report;
}

async function validateAnew(...args: string[]) {
  const { code, stdout, stderr } = await runCommand('validate', ...args, '--json');
  assert.equal(stderr, '');
  return { code, report: JSON.parse(stdout) };
}

/** Prints the reports of `openenv validate --url` for several servers: it takes seconds to import. */
const VALIDATE_WITH_OPENENV = `
import json, sys
from openenv.cli._validation import validate_running_environment
print(json.dumps([validate_running_environment(url) for url in sys.argv[1:]]))
`;

interface Criterion {
  readonly id: string;
  readonly description: string;
  readonly passed: boolean | null;
}

const essence = ({ id, description, passed }: Criterion) => ({ id, description, passed });

describe('servegym validate', () => {
  let ours: ServeProcess;
  let theirs: Awaited<ReturnType<typeof startReferences>>;
  before(async () => {
    [ours, theirs] = await Promise.all([startServe('--max-sessions', '4'), startReferences()]);
  });
  after(async () => {
    theirs.stop();
    await ours.stop();
  });

  it('finds nothing wrong with our server, and exits with 0', async () => {
    const { code, report } = await validate('--url', ours.url, '--strict');
    assert.deepEqual(report.summary.failed_criteria, []);
    assert.deepEqual(report.summary.not_applicable, []);
    assert.equal(code, 0);
  });

  it("finds what is known to be wrong with OpenEnv's own server, all of it beyond what clients rely on", async () => {
    const { code, report } = await validate('--url', theirs.reference);
    assert.deepEqual(report.summary.failed_criteria, [
      'episode_end',
      'capacity_refusal_readable',
      'http_stateful',
      'mcp_streamable_http',
    ]);
    assert.deepEqual(report.summary.not_applicable, ['tasks_playable', 'grades_inside', 'mcp_tools_list']);
    assert.deepEqual([code, report.passed, report.mode], [0, true, 'simulation']);
    assert.equal((await validate('--url', theirs.reference, '--strict')).code, 1);
  });

  it("validates OpenEnv's own server in production", async () => {
    const { report } = await validate('--url', theirs.production);
    assert.deepEqual([report.passed, report.mode], [true, 'production']);
  });

  it('agrees with `openenv validate` on its six criteria', async () => {
    const urls = [ours.url, theirs.reference, theirs.production];
    const { stdout } = await promisify(execFile)(python, ['-c', VALIDATE_WITH_OPENENV, ...urls]);
    for (const found of JSON.parse(stdout)) {
      const { report } = await validate('--url', found.target);
      assert.deepEqual(report.criteria.slice(0, 6).map(essence), found.criteria.map(essence));
      for (const key of ['validation_type', 'standard_version', 'standard_profile', 'mode', 'passed']) {
        assert.equal(report[key], found[key], key);
      }
    }
  });

  it('prints a line for each criterion, and what is wrong below it', async () => {
    const { code, stdout } = await runCommand('validate', '--url', theirs.reference);
    assert.equal(code, 0);
    assert.match(stdout, /^✓ state_contract +The state has/m);
    assert.match(
      stdout,
      /^! http_stateful .*\n {4}expected \{"episode_id":"servegym-validate","step_count":1\}, got/m,
    );
    assert.match(stdout, /: valid \(openenv-http\/1\.x, simulation mode\): 35 of 35 required criteria/);
  });

  it('takes an action and reset options for an environment that it cannot guess', async () => {
    const action = '{"batch_cap":64}';
    const { code, report } = await validate('--url', ours.url, '--action', action);
    assert.equal(code, 1);
    const session = report.criteria.find(({ id }: Criterion) => id === 'websocket_session');
    assert.match(session.details, /Field required/);
    const reset = ['--reset', '{"task_id":"bursty_workload"}', '--steps', '2'];
    assert.equal((await validate('--url', ours.url, ...reset)).code, 0);
  });

  it('exits with 1 when nobody is there, and with 2 when it is asked wrongly', async () => {
    const { code, report } = await validate('--url', 'http://127.0.0.1:9');
    assert.deepEqual([code, report.passed], [1, false]);
    const address = await closedAddress();
    const told = await runCommand('validate', '--url', address);
    assert.deepEqual(told, {
      code: 1,
      stdout: '',
      stderr: `error: ${address}/ cannot be reached: ECONNREFUSED. Start the server, or correct --url.\n`,
    });
    for (const args of [
      ['--url', 'here'],
      ['--env', 'nothing', '--url', ours.url],
      ['--url', ours.url, '--action', '3'],
    ]) {
      assert.equal((await runCommand('validate', ...args)).code, 2, args.join(' '));
    }
  });
});

const guess = join(import.meta.dirname, '../../openenv/examples/guess/environment.ts');

describe('servegym validate without an address', () => {
  it('serves an environment for it, and tells which', async () => {
    const { code, stdout } = await runCommand('validate', '--env', 'benchmark', '--timeout', '2', '--json');
    assert.equal(code, 0);
    const reports = JSON.parse(stdout);
    assert.deepEqual(
      reports.map(({ environment, passed }: { environment: string; passed: boolean }) => [
        environment,
        passed,
      ]),
      [['benchmark', true]],
    );
  });

  it('plays an environment of a module, and fails with what is wrong', async () => {
    const sound = await runCommand('validate', '--env', guess);
    assert.equal(sound.code, 0, sound.stderr);
    assert.match(sound.stdout, /^Guess 1$[\s\S]*^✓ episode_end [\s\S]*: valid /m);
    const refused = await runCommand('validate', '--env', guess, '--action', '{"number": 0}');
    assert.equal(refused.code, 1);
    assert.match(refused.stdout, /^✗ websocket_session [\s\S]*number: .*1[\s\S]*: not valid /m);
    assert.equal((await runCommand('validate', '--env', 'nothing')).code, 2);
  });
});
