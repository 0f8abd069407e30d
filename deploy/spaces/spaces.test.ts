import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { SPACES, type SpaceName, spaceDockerfile } from './space-dockerfile.ts';

const python =
  process.env.SERVEGYM_PYTHON ?? assert.fail('SERVEGYM_PYTHON is not set. Run the tests with `npm test`.');
const main = resolve(import.meta.dirname, '../../packages/servegym/src/main.ts');
const spaces = Object.keys(SPACES) as SpaceName[];

interface Served {
  readonly space: SpaceName;
  readonly url: string;
  stop(): Promise<unknown>;
}

async function serve(space: SpaceName): Promise<Served> {
  const child = spawn(process.execPath, [main, 'serve', '--host', '127.0.0.1', '--port', '0'], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, SERVEGYM_ENV: space, SERVEGYM_STORE: 'memory' },
  });
  const ended = once(child, 'exit');
  let told = '';
  let url: string | undefined;
  for await (const text of child.stdout.setEncoding('utf8').iterator({ destroyOnReturn: false })) {
    told += text;
    url = /^ServeGym is ready: (\S+)\/web\//m.exec(told)?.[1];
    if (url) break;
  }
  if (!url) throw new Error(`Expected \`servegym serve\` to tell its address, got: ${told}`);
  child.stdout.resume();
  return {
    space,
    url,
    async stop() {
      child.kill();
      await ended;
    },
  };
}

describe('the Spaces', () => {
  const servers: Served[] = [];
  // biome-ignore lint/suspicious/noExplicitAny: what check_spaces.py prints
  let found: any;
  before(async () => {
    for (const space of spaces) servers.push(await serve(space));
    const pairs = servers.map(({ space, url }) => `${space}=${url}`);
    const { stdout } = await promisify(execFile)(
      python,
      [join(import.meta.dirname, 'check_spaces.py'), ...pairs],
      {
        env: { ...process.env, PYTHONDONTWRITEBYTECODE: '1' },
      },
    );
    found = JSON.parse(stdout);
  });
  after(() => Promise.all(servers.map(({ stop }) => stop())));

  for (const space of spaces) {
    it(`${space} has what \`openenv push\` and \`openenv validate\` ask for`, () => {
      const { warnings, report, sdk, app_port } = found[space];
      // `outputs/` is where OpenEnv's own environments write; ours writes nothing.
      assert.deepEqual(warnings, ['Recommended directory missing: outputs/']);
      assert.equal(
        report.verdict ?? report.passed,
        report.verdict === undefined ? true : 'pass',
        JSON.stringify(report),
      );
      assert.deepEqual([sdk, app_port], ['docker', SPACES[space]]);
    });

    it(`${space} has the types that its server publishes, and its client plays`, () => {
      const { differences, unpublished_state, first_reward, reward, step_count } = found[space];
      assert.deepEqual(differences, { action: [], observation: [] });
      assert.deepEqual(unpublished_state, []);
      assert.equal(first_reward, null);
      assert.equal(typeof reward, 'number');
      assert.equal(step_count, 1);
    });

    it(`${space} has the Dockerfile of the repository`, () => {
      const text = readFileSync(join(import.meta.dirname, space, 'Dockerfile'), 'utf8');
      assert.equal(text, spaceDockerfile(space), 'node deploy/spaces/build-space.ts writes it again');
    });
  }
});
