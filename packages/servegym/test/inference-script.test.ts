import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join, resolve } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { type ServeProcess, startServe } from '../../../maintenance/test-servers/servegym.ts';
import { python } from './python-driver.ts';
import {
  type ModelAnswer,
  type ModelRequest,
  type ScriptedModel,
  startScriptedModel,
} from './scripted-model.ts';

const root = resolve(import.meta.dirname, '../../..');

const SERVE_ACTION = JSON.stringify({
  batch_cap: 64,
  kv_budget_fraction: 0.5,
  speculation_depth: 0,
  quantization_tier: 'FP16',
  prefill_decode_split: false,
  priority_routing: false,
});

/** Output of the script for one task. */
interface Played {
  readonly start: string;
  readonly steps: readonly string[];
  readonly end: string;
}

/** Folder in which the Spaces are built. */
const spaces = mkdtempSync(join(tmpdir(), 'servegym-inference-'));
after(() => rmSync(spaces, { recursive: true }));

async function buildSpace(space: string): Promise<void> {
  const script = join(root, 'deploy', 'spaces', 'build-space.ts');
  await promisify(execFile)(process.execPath, [script, space, join(spaces, space)]);
}

/** Runs a Space's `inference.py` and reads its lines, which have to be nothing else. */
async function runInference(space: string, variables: Record<string, string>) {
  const { OPENAI_API_KEY: _, ...environment } = process.env;
  // `npm ci` has put the program there.
  const programs = [dirname(process.execPath), join(root, 'node_modules', '.bin')].join(delimiter);
  const child = spawn(python, [join(spaces, space, 'inference.py')], {
    env: {
      ...environment,
      PATH: `${programs}${delimiter}${process.env.PATH}`,
      HF_TOKEN: 'token',
      MODEL_NAME: 'scripted',
      ...variables,
    },
  });
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (data) => {
    stdout += data;
  });
  child.stderr.on('data', (data) => {
    stderr += data;
  });
  const [code] = await once(child, 'close');
  const played: { start: string; steps: string[]; end: string }[] = [];
  for (const line of stdout
    .trimEnd()
    .split('\n')
    .filter((line) => line !== '')) {
    if (line.startsWith('[START] ')) played.push({ start: line, steps: [], end: '' });
    else if (line.startsWith('[STEP] ')) played.at(-1)!.steps.push(line);
    else if (line.startsWith('[END] ')) played.at(-1)!.end = line;
    else assert.fail(`unexpected line on standard output: ${line}\n${stderr}`);
  }
  return { code, played: played as readonly Played[], stderr };
}

const STEP = /^\[STEP\] step=(\d+) action=(\{\S+\}) reward=(-?\d+\.\d\d) done=(true|false) error=(null|.+)$/;
const END = /^\[END\] success=(true|false) steps=(\d+) score=(\d\.\d{3}) rewards=((?:-?\d+\.\d\d,?)*)$/;

/** Asserts the form of the lines and that they agree with each other. */
function assertLines({ steps, end }: Played): { score: number; errors: string[]; actions: unknown[] } {
  const read = steps.map((line, i) => {
    const match = STEP.exec(line);
    assert.ok(match, line);
    assert.equal(Number(match[1]), i + 1);
    return match;
  });
  const match = END.exec(end);
  assert.ok(match, end);
  assert.equal(Number(match[2]), steps.length);
  assert.deepEqual(
    match[4].split(',').filter((text) => text !== ''),
    read.map(([, , , reward]) => reward),
  );
  return {
    score: Number(match[3]),
    errors: read.map(([, , , , , error]) => error!),
    actions: read.map(([, , action]) => JSON.parse(action!)),
  };
}

describe('inference.py of the Spaces', () => {
  let server: ServeProcess;
  let model: ScriptedModel;
  let answer: (request: ModelRequest) => ModelAnswer = () => ({ content: SERVE_ACTION });
  before(async () => {
    model = await startScriptedModel((request) => answer(request));
    server = await startServe();
    for (const space of ['llmserve', 'inferencegym', 'benchmark']) await buildSpace(space);
  });
  after(async () => {
    await server.stop();
    await model.close();
  });

  it('plays every task of llmserve and tells each step', async () => {
    answer = () => ({ content: SERVE_ACTION });
    const asked = model.requests.length;
    const { code, played } = await runInference('llmserve', {
      ENV_URL: server.url,
      API_BASE_URL: model.baseUrl,
      MAX_CALLS: '4',
    });
    assert.equal(code, 0);
    assert.deepEqual(
      played.map(({ start }) => start),
      ['static_workload', 'bursty_workload', 'adversarial_multitenant'].map(
        (task) => `[START] task=${task} env=llmserve model=scripted`,
      ),
    );
    for (const task of played) {
      const { score, errors, actions } = assertLines(task);
      assert.ok(score > 0 && score < 1);
      assert.deepEqual(new Set(errors), new Set(['null']));
      for (const action of actions) assert.deepEqual(action, JSON.parse(SERVE_ACTION));
      assert.match(task.steps.at(-1)!, / done=true /);
    }
    assert.equal(model.requests.length - asked, 12);
    const request = model.requests.at(-1)!;
    assert.equal(request.response_format!.type, 'json_schema');
    assert.match(request.messages[0].content, /batch_cap \(integer, 1 to 512\)/);
    assert.match(request.messages[1].content, /^\d+ \| .* \| -?[\d.]+$/m);
  });

  it('keeps the last action when an answer is none or missing, and falls back to plain words', async () => {
    let answers = 0;
    answer = ({ response_format, tools }) => {
      if (response_format || tools) return { status: 400 };
      answers++;
      if (answers === 2 || answers === 3) return { content: 'I would rather not.' };
      if (answers === 4) return { content: SERVE_ACTION.replace('64', '9999') };
      if (answers === 5) return { content: SERVE_ACTION };
      if (answers >= 6 && answers <= 9) return { status: 503 };
      return { content: `I set ${SERVE_ACTION}.` };
    };
    const { code, played } = await runInference('llmserve', {
      ENV_URL: server.url,
      API_BASE_URL: model.baseUrl,
      TASK_NAME: 'static_workload',
      MAX_STEPS: '5',
    });
    assert.equal(code, 0);
    const { errors, actions } = assertLines(played[0]);
    assert.match(errors[1], /^invalid answer: .*; last action kept$/);
    assert.deepEqual(
      [errors[0], errors[2], errors[3], errors[4]],
      ['null', 'null', 'no answer; last action kept', 'null'],
    );
    for (const action of actions) assert.deepEqual(action, JSON.parse(SERVE_ACTION));
    assert.match(played[0].end, /^\[END\] success=false steps=5 /);
  });

  it('goes on with the default action when the first answers are out of range', async () => {
    let answers = 0;
    answer = () => ({ content: answers++ < 2 ? SERVE_ACTION.replace('64', '9999') : SERVE_ACTION });
    const { code, played } = await runInference('llmserve', {
      ENV_URL: server.url,
      API_BASE_URL: model.baseUrl,
      TASK_NAME: 'static_workload',
      MAX_CALLS: '6',
    });
    assert.equal(code, 0);
    const { errors, actions } = assertLines(played[0]);
    assert.match(errors[0], /^invalid answer: batch_cap: .*512.*; last action kept$/);
    assert.equal((actions[0] as { batch_cap: number }).batch_cap, 96);
    assert.deepEqual(actions.at(-1), JSON.parse(SERVE_ACTION));
    assert.match(played[0].steps.at(-1)!, / done=true /);
  });

  it('fails when no answer was a valid action, whatever the default action scored', async () => {
    answer = () => ({ content: 'I would rather not.' });
    const { code, played, stderr } = await runInference('llmserve', {
      ENV_URL: server.url,
      API_BASE_URL: model.baseUrl,
      MAX_CALLS: '2',
      SUCCESS_SCORE: '0.1',
    });
    assert.equal(code, 2);
    assert.match(stderr, /no answer of `scripted` was a valid action/);
    assert.equal(played.length, 3);
    for (const { end } of played) assert.match(end, /^\[END\] success=false steps=\d+ score=0\.200 /);
  });

  it('is no success with the score of the default action', async () => {
    answer = ({ messages }) => {
      const [, inForce] = /\| ([^|]+) \| \?$/.exec(messages.at(-1)!.content)!;
      const [cap, kv, depth, tier, split, priority] = inForce.split(' ');
      return {
        content: JSON.stringify({
          ...{ batch_cap: Number(cap), kv_budget_fraction: Number(kv), speculation_depth: Number(depth) },
          ...{
            quantization_tier: tier,
            prefill_decode_split: split === '1',
            priority_routing: priority === '1',
          },
        }),
      };
    };
    const { code, played } = await runInference('llmserve', {
      ENV_URL: server.url,
      API_BASE_URL: model.baseUrl,
      MAX_CALLS: '2',
    });
    assert.equal(code, 0);
    for (const { end } of played) assert.match(end, /^\[END\] success=false steps=\d+ score=0\.200 /);
  });

  it('ends the lines and fails when the model never answers', async () => {
    answer = () => ({ status: 503 });
    const { code, played, stderr } = await runInference('llmserve', {
      ENV_URL: server.url,
      API_BASE_URL: model.baseUrl,
    });
    assert.equal(code, 2);
    assert.match(stderr, /gave no answer of `scripted`/);
    assert.deepEqual(played, [
      {
        start: '[START] task=static_workload env=llmserve model=scripted',
        steps: [],
        end: '[END] success=false steps=0 score=0.000 rewards=',
      },
    ]);
  });

  it('ends the lines and fails when the model hangs', async () => {
    answer = () => ({ hangs: true });
    const { code, played, stderr } = await runInference('llmserve', {
      ENV_URL: server.url,
      API_BASE_URL: model.baseUrl,
      ANSWER_TIMEOUT_S: '0.3',
    });
    assert.equal(code, 2);
    assert.match(stderr, /gave no answer of `scripted`: it took longer than 0.3 s/);
    assert.equal(played[0].end, '[END] success=false steps=0 score=0.000 rewards=');
  });

  it('ends its lines also when there is no environment', async () => {
    const { code, played, stderr } = await runInference('llmserve', {
      ENV_URL: 'http://127.0.0.1:9',
      API_BASE_URL: model.baseUrl,
    });
    assert.equal(code, 2);
    assert.deepEqual(played, [
      {
        start: '[START] task=llmserve env=llmserve model=scripted',
        steps: [],
        end: '[END] success=false steps=0 score=0.000 rewards=',
      },
    ]);
    assert.match(stderr, /no OpenEnv server/);
  });

  it('plays in the image with the same options, and hands over the key by its name', async () => {
    const docker = join(spaces, 'docker');
    writeFileSync(docker, '#!/bin/sh\necho "$OPENAI_API_KEY $@" >&2\n');
    chmodSync(docker, 0o755);
    const { code, stderr } = await runInference('inferencegym', {
      PATH: spaces,
      LOCAL_IMAGE_NAME: 'gym:latest',
      API_BASE_URL: model.baseUrl,
      TASK_NAME: '2',
    });
    assert.equal(code, 0, stderr);
    assert.equal(
      stderr.trim(),
      `token run --rm --network host --env OPENAI_API_KEY --env OPENAI_BASE_URL gym:latest node packages/servegym/src/main.ts evaluate llm:scripted --env inferencegym --task 2 --seed 0 --lines 0.2 --llm max-calls=30,answer-timeout=45,time-budget=1020`,
    );
  });

  it('says what to install where there is no program', async () => {
    const { code, stderr } = await runInference('llmserve', { PATH: spaces });
    assert.equal(code, 1);
    assert.match(stderr, /npm ci --omit=dev/);
  });

  it('plays inferencegym and the benchmark, which has no end', async () => {
    const gym = await startServe('--env', 'inferencegym');
    const benchmark = await startServe('--env', 'benchmark');
    answer = ({ messages }) => ({
      content: messages[0].content.includes('wait_seconds')
        ? '{"wait_seconds": 0.001}'
        : '{"kv_budget": 0.9, "spec_length": 0, "batch_size": 64, "prefill_disagg": false, "quant_tier": 0}',
    });
    const [gymRun, benchmarkRun] = await Promise.all([
      runInference('inferencegym', { ENV_URL: gym.url, API_BASE_URL: model.baseUrl, MAX_CALLS: '3' }),
      runInference('benchmark', { ENV_URL: benchmark.url, API_BASE_URL: model.baseUrl }),
    ]);
    assert.deepEqual(
      gymRun.played.map(({ steps }) => steps.length),
      [200, 200, 200],
    );
    for (const task of gymRun.played) assert.ok(assertLines(task).score > 0);
    const [only] = benchmarkRun.played;
    assert.equal(only!.steps.length, 10);
    assertLines(only!);
    assert.match(only!.end, /^\[END\] success=true /);
    await gym.stop();
    await benchmark.stop();
  });
});
