import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { python } from './python-driver.ts';
import {
  type ModelAnswer,
  type ModelRequest,
  type ScriptedModel,
  startScriptedModel,
} from './scripted-model.ts';
import { type ServeProcess, startServe } from './serve-process.ts';

const spaces = join(import.meta.dirname, '..', '..', '..', 'deploy', 'spaces');

const SERVE_ACTION = JSON.stringify({
  batch_cap: 64,
  kv_budget_fraction: 0.5,
  speculation_depth: 0,
  quantization_tier: 'FP16',
  prefill_decode_split: false,
  priority_routing: false,
});

/** What the script printed for one task. */
interface Played {
  readonly start: string;
  readonly steps: readonly string[];
  readonly end: string;
}

/** Runs the Spaces' `inference.py` and reads its lines, which have to be nothing else. */
async function runInference(variables: Record<string, string>) {
  const { OPENAI_API_KEY: _, ...environment } = process.env;
  const child = spawn(python, [join(spaces, 'template', 'inference.py')], {
    env: { ...environment, HF_TOKEN: 'token', MODEL_NAME: 'scripted', ...variables },
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
  for (const line of stdout.trimEnd().split('\n')) {
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
    match[4]!.split(',').filter((text) => text !== ''),
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
  });
  after(async () => {
    await server.stop();
    await model.close();
  });

  it('plays every task of llmserve and tells each step', async () => {
    answer = () => ({ content: SERVE_ACTION });
    const asked = model.requests.length;
    const { code, played } = await runInference({
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
    assert.match(request.messages[0]!.content, /batch_cap \(integer, 1 to 512\)/);
    assert.match(request.messages[1]!.content, /which earned/);
  });

  it('keeps the last action when an answer is none, refused or missing, and falls back to plain words', async () => {
    let answers = 0;
    answer = ({ response_format }) => {
      if (response_format) return { status: 400 };
      answers++;
      if (answers === 2) return { content: 'I would rather not.' };
      if (answers === 3) return { content: SERVE_ACTION.replace('64', '9999') };
      if (answers === 4) return { status: 401 };
      return { content: `I set ${SERVE_ACTION}.` };
    };
    const { played } = await runInference({
      ENV_URL: server.url,
      API_BASE_URL: model.baseUrl,
      TASK_NAME: 'static_workload',
      MAX_STEPS: '5',
    });
    const { errors, actions } = assertLines(played[0]!);
    assert.deepEqual([errors[0], errors[4]], ['null', 'null']);
    assert.equal(errors[1], 'invalid answer; last action kept');
    assert.match(errors[2]!, /^422 .*batch_cap.*; last action kept$/);
    assert.equal(errors[3], 'no answer: AuthenticationError; last action kept');
    for (const action of actions) assert.deepEqual(action, JSON.parse(SERVE_ACTION));
    assert.match(played[0]!.end, /^\[END\] success=false steps=5 /);
  });

  it('ends its lines also when there is no environment', async () => {
    const { code, played, stderr } = await runInference({
      ENV_URL: 'http://127.0.0.1:9',
      API_BASE_URL: model.baseUrl,
    });
    assert.equal(code, 1);
    assert.deepEqual(played, [
      {
        start: '[START] task=all env=unknown model=scripted',
        steps: [],
        end: '[END] success=false steps=0 score=0.000 rewards=',
      },
    ]);
    assert.notEqual(stderr, '');
  });

  it('plays inferencegym and the benchmark, which has no end', async () => {
    const gym = await startServe('--env', 'inferencegym');
    const benchmark = await startServe('--env', 'benchmark');
    answer = ({ messages }) => ({
      content: messages[0]!.content.includes('wait_seconds')
        ? '{"wait_seconds": 0.001}'
        : '{"kv_budget": 0.9, "spec_length": 2, "batch_size": 64, "prefill_disagg": false, "quant_tier": 0}',
    });
    const [gymRun, benchmarkRun] = await Promise.all([
      runInference({ ENV_URL: gym.url, API_BASE_URL: model.baseUrl, MAX_CALLS: '3' }),
      runInference({ ENV_URL: benchmark.url, API_BASE_URL: model.baseUrl }),
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
