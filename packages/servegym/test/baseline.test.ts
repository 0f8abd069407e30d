import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { AGENTS, LlmClient, runBaseline } from '@servegym/agents';
import { type ServeProcess, startServe, startServeWith } from '../../../maintenance/test-servers/servegym.ts';
import { runCommand } from './in-process.ts';
import {
  ACTION,
  COMPLETION_TOKENS,
  type ModelAnswer,
  type ModelRequest,
  PROMPT_TOKENS,
  type ScriptedModel,
  startScriptedModel,
} from './scripted-model.ts';

/** No model that a person's own variables name is asked. */
const NOBODY = {
  OPENAI_API_KEY: undefined,
  OPENAI_BASE_URL: undefined,
  API_BASE_URL: undefined,
  MODEL_NAME: undefined,
  HF_TOKEN: undefined,
};
for (const name of Object.keys(NOBODY)) delete process.env[name];

async function baseline(...args: string[]) {
  const { code, stdout, stderr } = await runCommand('evaluate', '--seed', '0', ...args);
  assert.equal(code, 0, stderr);
  return stdout;
}

async function assertRefused(message: RegExp, ...args: string[]) {
  const { code, stderr } = await runCommand('evaluate', '--seed', '0', ...args);
  assert.equal(code, 2, stderr);
  assert.match(stderr, message);
}

describe('servegym evaluate --seed', () => {
  let folder: string;
  let model: ScriptedModel;
  const servers: ServeProcess[] = [];
  let answer: (request: ModelRequest) => ModelAnswer;
  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'servegym-baseline-'));
    model = await startScriptedModel((request) => answer(request));
  });
  after(async () => {
    rmSync(folder, { recursive: true });
    await Promise.all([model.close(), ...servers.map((server) => server.stop())]);
  });

  it('plays each task by rules, in process and at a server with the same result', async () => {
    const server = await startServe();
    servers.push(server);
    const local = JSON.parse(await baseline('--json'));
    const remote = JSON.parse(await baseline('--json', '--task', 'static_workload', '--url', server.url));
    assert.deepEqual(
      local.tasks.map((task: { task_id: string }) => task.task_id),
      ['static_workload', 'bursty_workload', 'adversarial_multitenant'],
    );
    assert.deepEqual([local.mode, local.agent, local.usage], ['deterministic', 'heuristic', null]);
    assert.deepEqual([local.runtime, remote.runtime], ['in-process', 'http']);
    for (const { score } of local.tasks) assert.ok(score > 0 && score < 1);
    assert.deepEqual({ ...remote.tasks[0], wall_s: 0 }, { ...local.tasks[0], wall_s: 0 });
  });

  it('plays the fixed agent of inferencegym', async () => {
    const result = JSON.parse(await baseline('--env', 'inferencegym', '--json', '--task', '2'));
    assert.equal(result.agent, 'baseline');
    assert.equal(result.tasks.length, 1);
    assert.equal(result.tasks[0].steps, 200);
    assert.match(await baseline('--env', 'inferencegym', '--task', '2'), /^mean score 0\.\d{3}$/m);
  });

  it('lets a model play, and counts its tokens, its cost and its answers', async () => {
    answer = () => ({ content: JSON.stringify(ACTION) });
    const file = join(folder, 'baseline.json');
    const asked = model.requests.length;
    process.env.OPENAI_BASE_URL = model.baseUrl;
    const table = await baseline(
      ...['llm:scripted', '--task', 'static_workload'],
      ...['--llm', 'decide-every=20,input-price=1,output-price=10', '--record', file],
    ).finally(() => delete process.env.OPENAI_BASE_URL);
    const result = JSON.parse(readFileSync(file, 'utf8'));
    const [task] = result.tasks;
    const calls = Math.ceil(task.steps / 20);
    assert.equal(model.requests.length - asked, calls);
    for (const action of task.actions) assert.deepEqual(action, ACTION);
    assert.deepEqual(task.answers, { asked: calls, invalid: 0, repaired: 0, keptLast: 0 });
    const { seconds, ...usage } = result.usage;
    assert.ok(seconds > 0);
    const cost = calls * (PROMPT_TOKENS + 10 * COMPLETION_TOKENS) * 1e-6;
    assert.ok(Math.abs(usage.cost_usd - cost) < 1e-12);
    assert.deepEqual(usage, {
      calls,
      failedCalls: 0,
      promptTokens: calls * PROMPT_TOKENS,
      completionTokens: calls * COMPLETION_TOKENS,
      format: 'json_schema',
      cost_usd: usage.cost_usd,
    });
    assert.match(table, /scripted at http[\s\S]*invalid[\s\S]*answers as json_schema/);
    assert.equal(model.requests.at(-1)!.response_format!.type, 'json_schema');
  });

  it('is played by the model of a server too, which can also play a session', async () => {
    answer = () => ({ content: JSON.stringify(ACTION) });
    const server = await startServeWith({
      ...NOBODY,
      SERVEGYM_STORE: 'memory',
      SERVEGYM_MAX_CALLS: '1000',
      OPENAI_BASE_URL: model.baseUrl,
      MODEL_NAME: 'scripted',
    });
    servers.push(server);
    const post = async (path: string, body: object) =>
      fetch(`${server.url}/${path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      });
    const asked = model.requests.length;
    const asModel = { use_openai: true, task_id: 'static_workload' };
    const played = await post('baseline', asModel);
    const result = await played.json();
    assert.deepEqual([played.status, result.mode, result.agent], [200, 'openai', 'llm']);
    assert.deepEqual(result.tasks[0].configuration, { ...ACTION });
    assert.equal(model.requests.length - asked, Math.ceil(result.tasks[0].steps / 6));

    const calls = model.requests.length - asked;
    assert.equal(result.usage.promptTokens, calls * PROMPT_TOKENS);
    assert.deepEqual(result.usage.answers, [{ asked: calls, invalid: 0, repaired: 0, keptLast: 0 }]);

    const policies = await (await fetch(`${server.url}/policies`)).json();
    assert.equal(policies.at(-1).title, 'Language model (scripted)');
    const { session_id } = await (await post('reset', { seed: 1 })).json();
    const { steps } = await (await post('policies/llm/step', { session_id, steps: 2 })).json();
    assert.deepEqual(
      steps.map((step: { action: object }) => step.action),
      [ACTION, ACTION],
    );
    assert.match(model.requests.at(-1)!.messages[1].content, /^0 \| /m);

    const late = await (await post('reset', { seed: 2 })).json();
    await post('policies/default/step', { session_id: late.session_id, steps: 3 });
    await post('policies/llm/step', { session_id: late.session_id });
    const shown = model.requests.at(-1)!.messages[1].content.match(/^\d+ \| .* \| -?[\d.]+$/gm);
    assert.equal(shown?.length, 3);

    answer = () => ({ status: 401 });
    const refused = await post('baseline', asModel);
    assert.deepEqual([refused.status, (await refused.json()).code], [502, 'LLM_REFUSED']);
    assert.equal((await post('policies/llm/step', { session_id })).status, 502);
  });

  it('is never asked by what a page of another site can make a browser send', async () => {
    const server = await startServeWith({
      ...NOBODY,
      SERVEGYM_STORE: 'memory',
      OPENAI_BASE_URL: model.baseUrl,
      MODEL_NAME: 'scripted',
    });
    servers.push(server);
    const asked = model.requests.length;
    const url = `${server.url}/baseline?use_openai=true&task_id=static_workload`;
    const refused = await fetch(url);
    assert.deepEqual([refused.status, refused.headers.get('allow')], [405, 'POST']);
    const { code, detail } = await refused.json();
    assert.equal(code, 'POST_REQUIRED');
    assert.match(detail, /Send POST \/baseline with \{"use_openai": true\}/);
    const image = { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'no-cors', 'sec-fetch-dest': 'image' };
    assert.equal((await fetch(url, { headers: image })).status, 403);
    const form = { 'content-type': 'text/plain', origin: 'https://evil.example' };
    const sent = await fetch(`${server.url}/baseline`, {
      method: 'POST',
      headers: form,
      body: '{"use_openai": true}',
    });
    assert.deepEqual([sent.status, (await sent.json()).code], [403, 'ORIGIN_REFUSED']);
    assert.equal(model.requests.length, asked);
    const local = await (
      await fetch(`${server.url}/baseline?use_openai=false&task_id=static_workload`)
    ).json();
    assert.equal(local.mode, 'deterministic');
  });

  it('takes the form of answer that the server knows, and gives up where none helps', async () => {
    const ask = async () => {
      const client = new LlmClient({ baseUrl: model.baseUrl, apiKey: 'k', model: 'm', retries: 0 });
      const text = await client.ask([{ role: 'user', content: 'go' }], { type: 'object' });
      return { text, usage: client.usage };
    };
    answer = ({ response_format }) => (response_format ? { status: 400 } : { toolArguments: '{"a": 1}' });
    let asked = await ask();
    assert.deepEqual([asked.text, asked.usage.format], ['{"a": 1}', 'tool']);
    answer = ({ tools, response_format }) =>
      tools || response_format?.type === 'json_schema' ? { status: 422 } : { content: '{"b": 2}' };
    asked = await ask();
    assert.deepEqual([asked.text, asked.usage.format], ['{"b": 2}', 'json_object']);
    answer = ({ tools, response_format }) =>
      tools || response_format ? { status: 400 } : { content: 'words' };
    asked = await ask();
    assert.deepEqual([asked.text, asked.usage.format], ['words', 'plain']);
    answer = () => ({ status: 400, message: 'no such model' });
    await assert.rejects(ask, { code: 'LLM_REFUSED', message: /no such model/ });
    answer = () => ({ status: 401 });
    await assert.rejects(ask, { code: 'LLM_REFUSED' });
    answer = () => ({ status: 503 });
    await assert.rejects(ask, { code: 'LLM_UNREACHABLE' });
  });

  it('tries again when the model is busy, and counts what is never answered', async () => {
    let requests = 0;
    answer = () => (++requests % 2 === 1 ? { status: 429 } : { content: '{}' });
    const client = new LlmClient({ baseUrl: model.baseUrl, apiKey: 'k', model: 'm', retries: 1 });
    assert.equal(await client.ask([{ role: 'user', content: 'go' }], {}), '{}');
    answer = () => ({ status: 503 });
    assert.equal(await client.ask([{ role: 'user', content: 'go' }], {}), null);
    assert.deepEqual([client.usage.calls, client.usage.failedCalls], [1, 1]);
  });

  it('gives a model up that leaves three questions in a row without an answer', async () => {
    let requests = 0;
    answer = () => (requests++ === 0 ? { content: '{}' } : { status: 503 });
    const client = new LlmClient({ baseUrl: model.baseUrl, apiKey: 'k', model: 'm', retries: 0 });
    const ask = () => client.ask([{ role: 'user', content: 'go' }], {});
    assert.deepEqual([await ask(), await ask(), await ask()], ['{}', null, null]);
    await assert.rejects(ask, { code: 'LLM_UNREACHABLE', message: /3 questions in a row/ });
  });

  it('shows that a model which hangs is waited for, and waits no longer than it is told', async () => {
    answer = () => ({ hangs: true });
    const waited: unknown[][] = [];
    const player = { baseUrl: model.baseUrl, apiKey: 'k', model: 'slow', timeoutSeconds: 1.4, history: 6 };
    const environment = AGENTS.llmserve.playable() as never;
    const plan = { environment, taskIds: ['static_workload'], seed: 0, player } as const;
    const watcher = { waiting: (...notice: unknown[]) => void waited.push(notice) };
    await assert.rejects(runBaseline({ ...plan, watcher }), {
      code: 'LLM_UNREACHABLE',
      message: /no answer of `slow`: it took longer than 1.4 s/,
    });
    assert.deepEqual(waited[0]?.slice(0, 2), ['static_workload', 1]);
  });

  it('plays the autoscaler on a task of fleet', async () => {
    const file = join(folder, 'fleet.json');
    await baseline('--env', 'fleet', '--task', 'agents', '--max-steps', '5', '--record', file);
    const { tasks, agent } = JSON.parse(readFileSync(file, 'utf8'));
    assert.deepEqual([agent, tasks[0].task_id, tasks[0].steps], ['hpa', 'agents', 5]);
    assert.ok(tasks[0].score > 0 && tasks[0].score < 0.2);
  });

  it('plays the benchmark, which has neither tasks nor an end', async () => {
    const { tasks, mean_score } = JSON.parse(await baseline('--env', 'benchmark', '--json'));
    assert.deepEqual([tasks.length, tasks[0].task_id, tasks[0].steps, mean_score], [1, null, 10, 1]);
    assert.match(await baseline('--env', 'benchmark', '--max-steps', '3'), /^benchmark +1\.000 +3\.00 +3 /m);
  });

  it('says what is wrong with its options', async () => {
    await Promise.all([
      assertRefused(/cannot be used with/, '--lines', '--json'),
      assertRefused(/contradict/, 'llm', '--llm', 'max-calls=3,decide-every=2'),
      assertRefused(/benchmark has no tasks/, '--env', 'benchmark', '--task', 'any'),
      assertRefused(/OPENAI_API_KEY/, 'llm'),
      assertRefused(/one of static_workload/, '--task', 'easy'),
      assertRefused(/no OpenEnv server/, '--url', 'http://127.0.0.1:9'),
    ]);
  });
});
