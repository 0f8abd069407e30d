import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { llmserve } from '@servegym/environments';
import { type ServeProcess, startServe } from '../../../maintenance/test-servers/servegym.ts';
import { temporaryFolder } from '../../../maintenance/test-servers/temporary-folder.ts';
import { runCommand } from './in-process.ts';

const trivialTask = join(import.meta.dirname, 'fixtures/trivial-task.ts');

async function json(...args: string[]) {
  const { code, stdout, stderr } = await runCommand(...args, '--json');
  assert.equal(code, 0, stderr);
  return JSON.parse(stdout);
}

describe("evaluating and training on traffic of one's own", () => {
  const folder = temporaryFolder();
  let trace: string;
  before(() => {
    trace = join(folder, 'monday.jsonl');
    const lines = Array.from({ length: 300 }, (_, i) =>
      JSON.stringify({
        timestamp: i * 400,
        input_length: 50 + ((i * 37) % 900),
        output_length: 20 + (i % 200),
      }),
    );
    writeFileSync(trace, lines.join('\n'));
  });

  it('evaluates on a trace, which the report names with its digest', async () => {
    const args = ['evaluate', 'default', '--task', 'static_workload', '--episodes', '1'];
    const own = await json(...args, '--traffic', trace, '--rate-scale', '2');
    const plain = await json(...args);
    assert.match(own.trace, /^monday@sha256:[0-9a-f]{64}$/);
    assert.equal(own.rate_scale, 2);
    assert.equal(plain.trace, undefined);
    assert.notEqual(own.tasks.static_workload.return.mean, plain.tasks.static_workload.return.mean);
  });

  it('evaluates under every shift', async () => {
    const report = await json(
      ...['evaluate', 'default', '--task', 'static_workload', '--episodes', '1', '--split', 'shifted'],
    );
    assert.deepEqual(Object.keys(report.shifts), [...llmserve.shifts]);
    const returns = llmserve.shifts.map((shift) => report.shifts[shift].tasks.static_workload.return.mean);
    assert.equal(new Set(returns).size, llmserve.shifts.length, `${returns}`);
  });

  it("evaluates on a task of one's own", async () => {
    const report = await json('evaluate', 'default', '--task', trivialTask, '--episodes', '1');
    assert.deepEqual(Object.keys(report.tasks), ['trivial_task']);
    assert.ok(Math.abs(report.tasks.trivial_task.score.mean - 0.2) < 1e-9);
  });

  it('trains on a trace, and the policy remembers on which', async () => {
    const out = join(folder, 'run');
    const plan = ['train', '--task', 'static_workload', '--steps', '2048', '--threads', '1', '--out', out];
    const { files } = await json(...plan, '--traffic', trace);
    const evaluated = await json('evaluate', files.policy, '--traffic', trace, '--episodes', '1');
    assert.equal(evaluated.agent, 'ppo');
  });

  it('says what it cannot do', async () => {
    for (const [args, message] of [
      [['evaluate', 'default', '--traffic', join(folder, 'none.csv')], /there is no such file/],
      [['evaluate', 'default', '--rate-scale', '50'], /from 0\.01 to 20/],
      [['train', '--task', 'static_workload', '--algo', 'static', '--traffic', trace], /--algo ppo/],
    ] as const) {
      const { code, stderr } = await runCommand(...args);
      assert.equal(code, 2, stderr);
      assert.match(stderr, message);
    }
  });
});

const csv = (prompt: number) =>
  [
    'arrival_s,input_tokens,output_tokens',
    ...Array.from({ length: 60 }, (_, i) => `${i},${prompt + i},20`),
  ].join('\n');

describe("servegym serve with a trace and a task of one's own", () => {
  let folder: string;
  let trace: string;
  const servers: ServeProcess[] = [];
  const start = async () => {
    const server = await startServe(
      ...['--store', join(folder, 'sessions.db')],
      ...['--traffic', trace, '--task', trivialTask],
    );
    servers.push(server);
    const call = async (path: string, body?: object) => {
      const answer = await fetch(`${server.url}${path}`, {
        ...(body && {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify(body),
        }),
      });
      return { status: answer.status, body: await answer.json() };
    };
    return { server, call };
  };
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'servegym-own-'));
    trace = join(folder, 'monday.csv');
    writeFileSync(trace, csv(100));
  });
  after(async () => {
    await Promise.all(servers.map(({ stop }) => stop('SIGKILL')));
    rmSync(folder, { recursive: true });
  });

  it('plays both, goes on after a restart, and refuses to go on when the trace has changed', async () => {
    const { server, call } = await start();
    const { body: tasks } = await call('/tasks');
    assert.equal(tasks.tasks.at(-1).id, 'trivial_task');

    const options = { task_id: 'trivial_task', trace: 'monday', rate_scale: 2, seed: 4 };
    const { body: reset } = await call('/reset', options);
    const { session_id } = reset;
    const step = { session_id, action: llmserve.defaultAction };
    const first = await call('/step', step);
    assert.equal(first.body.observation.request_arrival_rate, 2);
    assert.equal(first.body.observation.mean_prompt_length, 104.5);
    const state = `/state?session_id=${session_id}`;
    const { body: played } = await call(state);
    assert.match(played.trace, /^monday@sha256:[0-9a-f]{64}$/);
    await server.stop('SIGKILL');

    const again = await start();
    assert.deepEqual((await again.call(state)).body, played);
    const second = await again.call('/step', step);
    assert.equal(second.status, 200);
    const { body: grade } = await again.call('/grader', { session_id });
    assert.ok(grade.score > 0 && grade.score < 1);
    await again.server.stop('SIGKILL');

    writeFileSync(trace, csv(101));
    const changed = await start();
    const refused = await changed.call('/step', step);
    assert.equal(refused.status, 409, JSON.stringify(refused.body));
    assert.match(refused.body.detail, /the file has changed/);
    const fresh = await changed.call('/reset', { ...options, session_id });
    assert.equal(fresh.status, 200);
  });
});
