import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync, globSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';

import { PACKED } from './packed-packages.fixture.ts';

const run = promisify(execFile);
const root = join(import.meta.dirname, '..', '..');
const python =
  process.env.SERVEGYM_PYTHON ?? assert.fail('SERVEGYM_PYTHON is not set. Run the tests with `npm test`.');

/** Tests of clients/python/integration_tests, and the libraries that each drives. They do not share an environment. */
const INTEGRATIONS = {
  test_harbor_tasks: ['harbor==0.26.0'],
  test_evolve: ['openevolve==0.4.1', 'skydiscover==0.1.0'],
  test_verifiers: ['verifiers==0.4.0'],
};

/** A Python that harbor runs on. */
async function python312(): Promise<string> {
  const versions = join(
    process.env.PYENV_ROOT ?? join(homedir(), '.pyenv'),
    'versions',
    '3.*',
    'bin',
    'python',
  );
  const onPath = (process.env.PATH ?? '')
    .split(delimiter)
    .flatMap((folder) => ['python3.13', 'python3.12', 'python3'].map((name) => join(folder, name)));
  for (const path of [...onPath, ...globSync(versions)].filter((each) => existsSync(each))) {
    const check = 'import sys; sys.exit(not (3, 12) <= sys.version_info < (3, 14))';
    if (
      await run(path, ['-c', check]).then(
        () => true,
        () => false,
      )
    )
      return path;
  }
  return assert.fail('expected Python 3.12 or 3.13 on the PATH, which harbor needs');
}

const folder = mkdtempSync(join(tmpdir(), 'servegym-integrations-'));
const programOf = (name: string) => join(folder, name, 'bin', 'python');
after(() => rmSync(folder, { recursive: true, force: true }));

// Two at a time: most of a test is one process that waits for another.
describe('the Python package', { concurrency: 2 }, () => {
  let [base, wheel] = ['', ''];

  before(async () => {
    base = await python312();
    const build = join(root, 'maintenance', 'build-wheel.mjs');
    await run(process.execPath, [build, '--tarballs', PACKED, '--out', join(folder, 'wheel')]);
    wheel = join(folder, 'wheel', readdirSync(join(folder, 'wheel'))[0]);
  });

  for (const [name, libraries] of Object.entries(INTEGRATIONS))
    it(`works with ${libraries.join(' and ')}`, async () => {
      const uv = join(python, '..', 'uv');
      await run(uv, ['venv', '--quiet', '--python', base, join(folder, name)]);
      const packages = [wheel, 'pytest==9.2.0', ...libraries];
      await run(uv, ['pip', 'install', '--quiet', '--python', programOf(name), ...packages]);
      const tests = join(root, 'clients', 'python', 'integration_tests', `${name}.py`);
      const options = ['-m', 'pytest', '-q', '-p', 'no:cacheprovider', '--tb=short', tests];
      const { stdout } = await run(programOf(name), options, { cwd: folder, maxBuffer: 2 ** 26 });
      assert.match(stdout, /\d+ passed/);
      assert.doesNotMatch(stdout, /skipped/);
    });
});

describe('the Python package of a Harbor task', () => {
  it('has no solutions in the container of an agent, and evaluates policies there', async () => {
    const program = programOf('test_harbor_tasks');
    await run(program, ['-m', 'servegym.harbor.blind'], { cwd: folder });
    await run(program, ['-m', 'servegym', 'policy', 'new', 'router', 'policy.ts'], { cwd: folder });
    const evaluate = ['policy', 'evaluate', 'policy.ts', '--traces', '1', '--requests', '500', '--json'];
    const { stdout } = await run(program, ['-m', 'servegym', ...evaluate], { cwd: folder });
    assert.equal(typeof JSON.parse(stdout).combined_score, 'number');
    const installed = join(folder, 'test_harbor_tasks', 'lib', 'python3.*', 'site-packages', 'servegym');
    assert.deepEqual(globSync(join(installed, '{harbor,_server/**/policy/examples}')), []);
  });
});
