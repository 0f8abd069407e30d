import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { guess } from '../../examples/guess/environment.ts';
import { counterEnvironment } from '../fixtures/counter-environment.ts';
import { type LooseJson, pythonProgram, runPython, startPython } from '../fixtures/start-server.ts';
import { toolEnvironment } from '../fixtures/tool-environment.ts';
import { createServer, type ServerOptions } from './create-server.ts';
import type { ListeningServer } from './listen.ts';

const TOOLS = ['start_episode', 'take_action', 'get_state', 'list_tasks', 'grade_episode'];

let servers: ListeningServer[] = [];
/** OpenEnv's own server of an environment that brings tools. */
let referenceTools: Awaited<ReturnType<typeof startPython>> | undefined;
/** Results of the Python clients, by scenario. One interpreter plays them all: it takes seconds to import OpenEnv. */
let seen: LooseJson;

before(async () => {
  const kinds: ServerOptions[] = [{}, { maxSessions: 1 }, { mode: 'production' }];
  servers = await Promise.all(
    [
      ...kinds.map((options) => createServer(counterEnvironment, options)),
      createServer(guess),
      createServer(toolEnvironment),
    ].map((server) => server.listen({ port: 0, host: '127.0.0.1' })),
  );
  referenceTools = await startPython('reference_tools.py');
  const urls = [...servers, referenceTools].map(({ url }) => url);
  seen = JSON.parse(await runPython(pythonProgram('clients.py'), ...urls));
});
after(async () => {
  referenceTools?.process.kill('SIGKILL');
  await Promise.all(servers.map((server) => server.close()));
});

test('the Python client plays an episode, synchronously', () => {
  assert.deepEqual(seen.synchronous, [
    { observation: { total: 7, note: 'ready' }, reward: null, done: false, metadata: null },
    { observation: { total: 9, note: '' }, reward: 0.2, done: false, metadata: { added: 2 } },
    { episode_id: 'mine', step_count: 1, total: 9, target: 10, seed: 7, done: false },
    'Server error: Invalid message: amount: Input should be less than or equal to 10 (code: VALIDATION_ERROR)',
    { observation: { total: 10, note: '' }, reward: 0.1, done: true, metadata: { added: 1 } },
  ]);
});

test('forty Python clients play at once, asynchronously, each on its own counter', () => {
  const expected = Array.from({ length: 40 }, (_, index) => (index % 10) + 5 * (index % 7));
  assert.deepEqual(seen['at once'], expected);
});

test('a Python client that is refused for capacity is told so, every time', () => {
  const refusal =
    'Server error: Server at capacity: 1/1 sessions active. Cannot accept new connections. (code: CAPACITY_REACHED)';
  assert.deepEqual(
    seen.refused,
    Array.from({ length: 10 }, () => refusal),
  );
});

test('MCPToolClient finds the tools, plays with them, and shares the session with its socket', () => {
  assert.deepEqual(seen.tools, [
    TOOLS,
    ['amount', 'mode', 'note', 'weight'],
    { observation: { total: 3, note: 'ready' }, reward: null, done: false },
    { observation: { total: 7, note: '' }, reward: 0.4, done: false, metadata: { added: 4 } },
    ['mine', 1],
    "Tool 'nope' failed: Unknown tool: 'nope'",
  ]);
});

test('MCPToolClient finds and calls the tools of an environment as it does at OpenEnv’s own server', () => {
  const [overHttp, asSteps, ...reference] = seen['own tools'];
  assert.deepEqual(overHttp, [
    ['echo_message', 'Echo back the provided message.', { message: 'string' }, ['message']],
    ['divide', 'Divide a number by another.', { number: 'number', by: 'number' }, ['by', 'number']],
    'hi',
    { quotient: 1.5 },
    true,
  ]);
  assert.deepEqual([overHttp, asSteps], reference);
});

test('the stock MCP client of Python plays an episode', () => {
  assert.deepEqual(seen.mcp, [
    'counter',
    TOOLS,
    true,
    { observation: { total: 5, note: '' }, reward: 0.2, done: true, metadata: { added: 2 } },
    [true, 'The episode is over. Reset the session to start another.'],
  ]);
});

test('openenv validate passes all its criteria, in simulation and in production', async () => {
  assert.equal(seen['validate tutorial'].passed, true, JSON.stringify(seen['validate tutorial']));
  for (const mode of ['simulation', 'production']) {
    const report = seen[`validate ${mode}`];
    assert.equal(report.passed, true, JSON.stringify(report));
    assert.deepEqual([report.mode, report.passed_count, report.total_count], [mode, 6, 6]);
  }
  const stdout = await runPython('-m', 'openenv.cli', 'validate', '--url', servers[0].url, '--json');
  assert.equal(JSON.parse(stdout).passed, true);
});
