import assert from 'node:assert/strict';
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { inferencegym, readTableRows, SHIPPED_TABLE_URL } from '@servegym/environments';
import { encodeTable } from '@servegym/environments/table';
import { validateServer } from '@servegym/openenv/validate';
import { type ServeProcess, startServe } from '../../../maintenance/test-servers/servegym.ts';
import { temporaryFolder } from '../../../maintenance/test-servers/temporary-folder.ts';
import { runCommand } from './in-process.ts';
import { type PythonDriver, startPythonDriver } from './python-driver.ts';

const shippedTable = fileURLToPath(SHIPPED_TABLE_URL);

const folder = temporaryFolder();

describe('servegym serve --env inferencegym', () => {
  let server: ServeProcess;
  before(async () => {
    server = await startServe('--env', 'inferencegym');
  });
  after(() => server.stop());

  async function get(path: string) {
    const answer = await fetch(server.url + path);
    return { status: answer.status, body: await answer.json() };
  }
  async function post(path: string, body: unknown) {
    const answer = await fetch(server.url + path, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    return { status: answer.status, body: await answer.json() };
  }

  it('meets every criterion of validate', async () => {
    const { passed, summary } = await validateServer(server.url, {
      steps: 3,
      mostSessions: 4,
      timeoutMs: 100_000,
    });
    assert.deepEqual(summary.failed_criteria, []);
    assert.equal(passed, true);
  });

  it('lists the tasks of InferenceGym with their active actions', async () => {
    const { body } = await get('/tasks');
    assert.deepEqual(
      body.tasks.map(({ id, name, difficulty, active_actions }: Record<string, unknown>) => [
        id,
        name,
        difficulty,
        active_actions,
      ]),
      [
        [1, 'Static Uniform', 'easy', ['kv_budget', 'batch_size']],
        [2, 'Bursty ShareGPT', 'medium', ['kv_budget', 'batch_size', 'spec_length']],
        [
          3,
          'Adversarial Multi-Tenant',
          'hard',
          ['kv_budget', 'spec_length', 'batch_size', 'prefill_disagg', 'quant_tier'],
        ],
      ],
    );
  });

  it('is played by session_id and graded from its own record', async () => {
    const reset = await post('/reset', {});
    assert.equal(reset.status, 200);
    assert.equal(reset.body.episode_length, inferencegym.episodeSteps);
    inferencegym.definition().observation.parse(reset.body.observation);
    const { session_id } = reset.body;
    // Clients of the seed send integers as floats, and flags as integers.
    const action = { kv_budget: 0.8, spec_length: 0.0, batch_size: 192.0, prefill_disagg: 0, quant_tier: 0 };
    for (let step = 1; step <= inferencegym.episodeSteps; step++) {
      const { body } = await post('/step', { session_id, action });
      if (step > 1 && step < inferencegym.episodeSteps) continue;
      assert.equal(body.info.timestep, step);
      assert.equal(typeof body.info.metrics.ttft_p50_ms, 'number');
      assert.equal(typeof body.info.workload.phase, 'string');
      assert.equal(body.done, step === inferencegym.episodeSteps);
    }
    const over = await post('/step', { session_id, action });
    assert.deepEqual([over.status, over.body.code], [409, 'EPISODE_OVER']);
    const state = (await get(`/state?session_id=${session_id}`)).body;
    assert.deepEqual(
      [state.step_count, state.done, state.task_id, state.seed],
      [inferencegym.episodeSteps, true, 1, 42],
    );
    assert.equal(typeof state.cumulative_reward, 'number');

    const graded = await post('/grader', { session_id });
    assert.ok(graded.body.score > 0.8 && graded.body.score < 1);
    assert.equal(graded.body.breakdown.return, state.cumulative_reward);
    const log = Array.from({ length: inferencegym.episodeSteps }, () => ({
      action,
      reward: 1e9,
      observation: { lie: 1 },
    }));
    const replayed = await post('/grader', { task_id: 1, seed: 42, episode_log: log });
    assert.deepEqual(replayed.body, graded.body);
    const forged = await post('/grader', { task_id: 1, episode_log: [{ reward: 1e9, tokens_per_sec: 1e9 }] });
    assert.equal(forged.status, 422);
    const empty = await post('/grader', { task_id: 1, episode_log: [] });
    assert.ok(empty.body.score < 0.01);
    assert.match(empty.body.feedback, /no actions/);
  });

  it('replays a log on the seed of its session, and on 42 where nothing tells one', async () => {
    const { session_id } = (await post('/reset', { task_id: 2, seed: 7 })).body;
    const on = async (request: object) =>
      (await post('/grader', { ...request, episode_log: [{}] })).body.replayed;
    for (const request of [{ session_id }, { session_id, task_id: '2' }, { task_id: 'bursty_sharegpt' }]) {
      assert.deepEqual(await on(request), { task_id: 2, seed: 7 }, JSON.stringify(request));
    }
    assert.deepEqual(await on({ session_id, task_id: 3 }), { task_id: 3, seed: 42 });
    assert.deepEqual(await on({ task_id: 2, seed: 9 }), { task_id: 2, seed: 9 });
  });

  it('refuses a task of a split beside another task or seed', async () => {
    for (const beside of [{ task_id: 2 }, { seed: 5 }]) {
      const { status, body } = await post('/reset', { split: 'validation', index: 1, ...beside });
      assert.deepEqual([status, body.code], [400, 'CONFLICTING_OPTIONS'], JSON.stringify(beside));
    }
    const agreeing = await post('/reset', { split: 'validation', index: 1, task_id: '1', seed: 1_000_001 });
    assert.equal(agreeing.status, 200);
  });

  it('answers what it does not understand with 404 and 422, and says why', async () => {
    const unknownTask = await post('/reset', { task_id: 9 });
    assert.equal(unknownTask.status, 422);
    assert.match(JSON.stringify(unknownTask.body), /1, 2 or 3/);
    assert.equal((await post('/step', { session_id: 'nobody', action: {} })).status, 404);
    const { session_id } = (await post('/reset', { task_id: '2', seed: 3, config: { alpha: 0.5 } })).body;
    for (const action of [
      { batch_size: 0 },
      { batch_size: 2.5 },
      { kv_budget: 7 },
      { quant_tier: 9 },
      { x: 1 },
    ]) {
      assert.equal((await post('/step', { session_id, action })).status, 422, JSON.stringify(action));
    }
    assert.equal((await get(`/state?session_id=${session_id}`)).body.step_count, 0);
    assert.equal((await post('/reset', { config: { gain: 1 } })).status, 422);
  });

  it('says that it simulates, and with which seed', async () => {
    const { body } = await get('/runtime');
    const { active_sessions, ...rest } = body;
    assert.ok(active_sessions >= 0);
    assert.deepEqual(rest, { mode: 'sim', backend: { mode: 'sim', provider: 'simulator' }, seed: 42 });
    assert.equal((await get('/tasks')).body.action_schema.title, 'InferenceAction');
  });

  it('plays the baseline agent within the expected ranges, over GET and POST', async () => {
    const { body } = await get('/baseline');
    assert.deepEqual([body.agent, body.mode, body.seed], ['baseline', 'deterministic', 0]);
    assert.deepEqual([body.task1, body.task2, body.task3], body.tasks);
    assert.deepEqual(
      body.tasks.map(({ expected_range }: { expected_range: number[] }) => expected_range),
      [
        [0.3, 0.4],
        [0.22, 0.32],
        [0.18, 0.28],
      ],
    );
    for (const { score, expected_range, configuration, breakdown, feedback } of body.tasks) {
      assert.ok(score >= expected_range[0] && score <= expected_range[1]);
      assert.deepEqual(configuration, inferencegym.defaultAction);
      assert.equal(breakdown.steps_played, inferencegym.episodeSteps);
      assert.notEqual(feedback, '');
    }
    assert.deepEqual((await post('/baseline', {})).body, body);
    const one = await get('/baseline?task_id=3&agent=random&seed=5');
    assert.deepEqual(
      one.body.tasks.map(({ task_id }: { task_id: number }) => task_id),
      [3],
    );
    assert.equal(one.body.tasks[0].configuration, null);
    for (const [query, status, code] of [
      ['task_id=7', 404, 'UNKNOWN_TASK'],
      ['agent=nobody', 404, 'UNKNOWN_AGENT'],
    ] as const) {
      const refused = await get(`/baseline?${query}`);
      assert.deepEqual([refused.status, refused.body.code], [status, code]);
    }
    for (const query of ['seed=-1', 'seed=1.5', 'use_openai=perhaps', 'unknown=1']) {
      assert.equal((await get(`/baseline?${query}`)).status, 422, query);
    }
  });

  it('tells schemas and reward weights at /info, and leads /demo to the page', async () => {
    const { body } = await get('/info');
    const { metadata, ...knobs } = body.action_schema.properties;
    assert.deepEqual(Object.keys(knobs), Object.keys(inferencegym.defaultAction));
    assert.equal(Object.keys(body.observation_schema.properties).includes('queue_depth'), true);
    assert.deepEqual(body.reward_weights['3'], { alpha: 0.4, beta: 0.25, gamma: 0.35, delta: 0.15 });
    const demo = await fetch(`${server.url}/demo`, { redirect: 'manual' });
    assert.deepEqual([demo.status, demo.headers.get('location')], [307, 'web/']);
  });

  it('describes all of it in the OpenAPI document', async () => {
    const { paths } = (await get('/openapi.json')).body;
    for (const [path, method] of [
      ['/tasks', 'get'],
      ['/grader', 'post'],
      ['/baseline', 'get'],
      ['/baseline', 'post'],
      ['/info', 'get'],
    ]) {
      assert.ok(paths[path!]?.[method!], `${method} ${path}`);
    }
    const resetAnswer = paths['/reset'].post.responses[200].content['application/json'].schema;
    assert.ok(resetAnswer.required.includes('episode_length'));
  });

  describe('from Python', () => {
    let driver: PythonDriver;
    before(() => {
      driver = startPythonDriver();
    });
    after(() => driver.stop());

    it('is played to its end by the openenv client', async () => {
      const { first, rewards, last, state } = await driver.call('play_episode', {
        url: server.url,
        options: { task_id: 3, seed: 7 },
        action: { batch_size: 64, quant_tier: 1 },
      });
      assert.equal(first.reward, null);
      assert.equal(rewards.length, inferencegym.episodeSteps);
      inferencegym.definition().observation.parse(last);
      assert.deepEqual([state.task_id, state.seed, state.done], [3, 7, true]);
    });
  });
});

describe('servegym serve --env llmserve', () => {
  it('answers /baseline and /info for its own tasks', async () => {
    const server = await startServe();
    try {
      const ask = async (path: string) => (await fetch(server.url + path)).json();
      const baseline = await ask('/baseline?task_id=static_workload');
      assert.deepEqual(
        [baseline.environment, baseline.agent, baseline.mode],
        ['llmserve', 'heuristic', 'deterministic'],
      );
      const [task] = baseline.tasks;
      assert.ok(task.score > 0 && task.score < 1);
      assert.equal(baseline.scores.static_workload, task.score);
      const constant = await ask('/baseline?task_id=static_workload&agent=default');
      assert.notEqual(constant.tasks[0].configuration, null);
      const info = await ask('/info');
      assert.ok(Object.keys(info.reward_weights).includes('bursty_workload'));
    } finally {
      await server.stop();
    }
  });
});

describe('a table of one’s own', () => {
  it('is played with --table, and refused when it cannot be', async () => {
    const own = join(folder, 'own.parquet');
    const rows = await shippedRows();
    // A server that is half as fast for the same money.
    const halved = rows.map((row) => ({
      ...row,
      tps: row.tps / 2,
      tpot_ms: row.tpot_ms * 2,
      cost_per_1k: row.cost_per_1k * 2,
    }));
    writeFileSync(own, encodeTable(halved, { output_tokens: '256' }));
    const args = [
      'evaluate',
      'baseline',
      '--env',
      'inferencegym',
      '--task',
      '1',
      '--episodes',
      '2',
      '--json',
    ];
    const [shipped, slow] = await Promise.all([runCommand(...args), runCommand(...args, '--table', own)]);
    const [fast, slower] = [JSON.parse(shipped.stdout), JSON.parse(slow.stdout)];
    assert.match(slower.version, /\+table\./);
    assert.ok(slower.tasks['1'].cost_per_1k_usd > 1.3 * fast.tasks['1'].cost_per_1k_usd);

    const broken = join(folder, 'not-a-table.parquet');
    copyFileSync(fileURLToPath(import.meta.url), broken);
    const refused = await runCommand(...args, '--table', broken);
    assert.equal(refused.code, 2);
    assert.match(refused.stderr, /Expected a Parquet file.*NOT_PARQUET/);
  });

  it('is learned on, and what was learned is evaluated', async () => {
    const out = join(folder, 'run');
    const trained = await runCommand(
      ...['train', '--env', 'inferencegym', '--task', '1', '--steps', '1000', '--threads', '1'],
      ...['--table', shippedTable, '--out', out, '--json'],
    );
    assert.equal(trained.code, 0, trained.stderr);
    const evaluated = await runCommand(
      ...['evaluate', join(out, 'policy.safetensors'), '--env', 'inferencegym', '--episodes', '2', '--json'],
    );
    assert.equal(evaluated.code, 0, evaluated.stderr);
    const report = JSON.parse(evaluated.stdout);
    assert.deepEqual([report.agent, Object.keys(report.tasks)], ['ppo', ['1']]);
  });
});

describe('servegym evaluate --env inferencegym with several policies', () => {
  it('ranks policies on the same traffic', async () => {
    const { code, stdout, stderr } = await runCommand(
      ...['evaluate', 'random', 'baseline', '--env', 'inferencegym', '--task', '3', '--episodes', '4'],
    );
    assert.equal(code, 0, stderr);
    assert.match(stdout, /^inferencegym \S+, test split, 4 episodes a task/m);
    assert.match(stdout, /^baseline +1 .* 0\.2\d\d +0\./m);
    assert.match(stdout, /^random +2 .* 0\.0\d\d +0\./m);
  });

  for (const [what, args, message] of [
    [
      'an option of another environment',
      ['evaluate', 'baseline', '--env', 'inferencegym', '--rate-scale', '2'],
      /--rate-scale means nothing to inferencegym/,
    ],
    ['a table beside llmserve', ['evaluate', 'default', '--table', 'x'], /--table means nothing to llmserve/],
    [
      'an unknown policy',
      ['evaluate', 'baseline', 'mpc9', '--env', 'inferencegym'],
      /one of random, default, baseline, .*got "?mpc9/,
    ],
    [
      'an unknown task',
      ['evaluate', 'baseline', 'random', '--env', 'inferencegym', '--task', '7'],
      /task of inferencegym, all or one of 1, 2, 3, got 7/,
    ],
  ] as const) {
    it(`refuses ${what} with exit code 2`, async () => {
      const { code, stderr } = await runCommand(...args);
      assert.match(stderr, message);
      assert.equal(code, 2);
    });
  }
});

async function shippedRows() {
  const { columns, count } = await readTableRows(readFileSync(shippedTable));
  return Array.from({ length: count }, (_, row) =>
    Object.fromEntries(Object.entries(columns).map(([name, column]) => [name, column[row]])),
  ) as Parameters<typeof encodeTable>[0][number][];
}
