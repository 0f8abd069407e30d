import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { type ServeProcess, startServeWith } from '../../maintenance/test-servers/servegym.ts';
import { commandOf, copyOf, readStages, variablesOf } from '../test/dockerfile-steps.ts';
import { SPACES, type SpaceName } from './build-space.ts';

const python =
  process.env.SERVEGYM_PYTHON ?? assert.fail('SERVEGYM_PYTHON is not set. Run the tests with `npm test`.');
const spaces = Object.keys(SPACES) as SpaceName[];

describe('the Spaces', () => {
  const servers = new Map<SpaceName, ServeProcess>();
  const work = mkdtempSync(join(tmpdir(), 'servegym-spaces-'));
  const folder = join(work, 'built');
  /** The upload of `openenv push`. */
  const staged = join(work, 'staged');
  // biome-ignore lint/suspicious/noExplicitAny: what check_spaces.fixture.py prints
  let found: any;
  before(async () => {
    for (const space of spaces)
      servers.set(space, await startServeWith({ SERVEGYM_ENV: space, SERVEGYM_STORE: 'memory' }));
    for (const space of spaces) {
      const script = join(import.meta.dirname, 'build-space.ts');
      await promisify(execFile)(process.execPath, [script, space, join(folder, space)]);
    }
    const pairs = [...servers].map(([space, { url }]) => `${space}=${url}`);
    const { stdout } = await promisify(execFile)(python, [
      join(import.meta.dirname, 'check_spaces.fixture.py'),
      folder,
      staged,
      ...pairs,
    ]);
    found = JSON.parse(stdout);
  });
  after(async () => {
    await Promise.all([...servers.values()].map(({ stop }) => stop()));
    rmSync(work, { recursive: true });
  });

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
      assert.deepEqual([sdk, app_port], ['docker', SPACES[space].port]);
    });

    it(`${space} has the types that its server publishes, and its client plays`, () => {
      const { differences, unpublished_state, first_reward, reward, step_count } = found[space];
      assert.deepEqual(differences, { action: [], observation: [] });
      assert.deepEqual(unpublished_state, []);
      assert.equal(first_reward, null);
      assert.equal(typeof reward, 'number');
      assert.equal(step_count, 1);
    });

    it(`${space} has all that its image is built from once \`openenv push\` has left files out`, () => {
      const stages = readStages(readFileSync(join(staged, space, 'Dockerfile'), 'utf8'));
      const copied = stages.flatMap(({ instructions }) =>
        instructions.filter(({ name }) => name === 'COPY').map(copyOf),
      );
      const sources = copied.filter(({ from }) => from === undefined).flatMap((copy) => copy.sources);
      assert.ok(sources.includes('servegym/package-lock.json'));
      assert.deepEqual(
        sources.filter((source) => !existsSync(join(staged, space, source))),
        [],
      );
      const last = stages.at(-1)!;
      const { SERVEGYM_ENV, PORT } = variablesOf(last);
      assert.deepEqual([SERVEGYM_ENV, PORT], [space, String(SPACES[space].port)]);
      assert.ok(last.instructions.some(({ name, rest }) => name === 'EXPOSE' && rest === PORT));
      assert.ok(existsSync(join(staged, space, 'servegym', commandOf(last)[1])));
      const lock = join(staged, space, 'uv.lock');
      assert.ok(!existsSync(lock) || readFileSync(lock, 'utf8').includes('[[package]]'), 'uv.lock is empty');
    });

    it(`${space} names its tasks and its spaces in openenv.yaml`, async () => {
      const { tasks = [], action_space, observation_space, reward_range } = found[space].manifest;
      const { url } = servers.get(space)!;
      const published = await (await fetch(`${url}/tasks`)).json();
      assert.deepEqual(tasks, published.tasks);
      const schema = await (await fetch(`${url}/schema`)).json();
      const names = (fields: object) =>
        Object.keys(fields).filter((name) => !['metadata', 'reward', 'done'].includes(name));
      assert.deepEqual(
        [action_space, observation_space].map((list) => list.map(({ name }: { name: string }) => name)),
        [names(schema.action.properties), names(schema.observation.properties)],
      );
      assert.deepEqual(reward_range, SPACES[space].rewardRange);
    });
  }
});
