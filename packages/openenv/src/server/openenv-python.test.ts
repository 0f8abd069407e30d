import assert from 'node:assert/strict';
import { test } from 'node:test';
import { counterEnvironment } from '../fixtures/counter-environment.ts';
import { runOpenEnvCli, runPython } from '../fixtures/python.ts';
import { startServer } from '../fixtures/start-server.ts';

const PRELUDE = `
import asyncio, json, sys
from openenv.core import GenericEnvClient
from openenv.core.mcp_client import MCPToolClient
url = sys.argv[1]
told = []
def tell(result):
    told.append({'observation': result.observation, 'reward': result.reward, 'done': result.done, 'metadata': result.metadata})
def tell_error(error):
    told.append(f'{type(error).__name__}: {error}')
`;

test('the Python client plays an episode, synchronously', async (t) => {
  const { url } = await startServer(t, counterEnvironment);
  const output = await runPython(
    `${PRELUDE}
with GenericEnvClient(base_url=url).sync() as env:
    tell(env.reset(seed=7, episode_id='mine', target=10))
    tell(env.step({'amount': 2, 'metadata': {}}))
    told.append(env.state())
    try:
        env.step({'amount': 99})
    except RuntimeError as error:
        tell_error(error)
    tell(env.step({'amount': 1}))
print(json.dumps(told))`,
    url,
  );
  assert.deepEqual(JSON.parse(output), [
    { observation: { total: 7, note: 'ready' }, reward: null, done: false, metadata: null },
    { observation: { total: 9, note: '' }, reward: 0.2, done: false, metadata: { added: 2 } },
    { episode_id: 'mine', step_count: 1, total: 9, target: 10, seed: 7, done: false },
    'RuntimeError: Server error: Invalid message: amount: Input should be less than or equal to 10 (code: VALIDATION_ERROR)',
    { observation: { total: 10, note: '' }, reward: 0.1, done: true, metadata: { added: 1 } },
  ]);
});

test('forty Python clients play at once, asynchronously, each on its own counter', async (t) => {
  const { url } = await startServer(t, counterEnvironment);
  const output = await runPython(
    `${PRELUDE}
async def play(index):
    async with GenericEnvClient(base_url=url) as env:
        result = await env.reset(seed=index % 10, target=1000)
        for _ in range(5):
            result = await env.step({'amount': index % 7})
        return result.observation['total']
async def main():
    return await asyncio.gather(*(play(index) for index in range(40)))
print(json.dumps(asyncio.run(main())))`,
    url,
  );
  const expected = Array.from({ length: 40 }, (_, index) => (index % 10) + 5 * (index % 7));
  assert.deepEqual(JSON.parse(output), expected);
});

test('a Python client that is refused for capacity is told so', async (t) => {
  const { url } = await startServer(t, counterEnvironment, { maxSessions: 1 });
  const output = await runPython(
    `${PRELUDE}
async def main():
    async with GenericEnvClient(base_url=url) as holder:
        await holder.reset()
        for _ in range(10):
            try:
                async with GenericEnvClient(base_url=url) as env:
                    await env.reset()
            except RuntimeError as error:
                tell_error(error)
asyncio.run(main())
print(json.dumps(told))`,
    url,
  );
  const refusal =
    'RuntimeError: Server error: Server at capacity: 1/1 sessions active. Cannot accept new connections. (code: CAPACITY_REACHED)';
  assert.deepEqual(
    JSON.parse(output),
    Array.from({ length: 10 }, () => refusal),
  );
});

test('MCPToolClient finds the tools, plays with them, and shares the session with its socket', async (t) => {
  const { url } = await startServer(t, counterEnvironment);
  const output = await runPython(
    `${PRELUDE}
async def main():
    async with MCPToolClient(base_url=url) as env:
        tools = await env.list_tools()
        told.append([tool.name for tool in tools])
        told.append(sorted(tools[1].input_schema['properties']))
        told.append(await env.call_tool('start_episode', seed=3, episode_id='mine'))
        told.append(await env.call_tool('take_action', amount=4))
        state = await env.state()
        told.append([state.episode_id, state.step_count])
        try:
            await env.call_tool('nope')
        except RuntimeError as error:
            tell_error(error)
asyncio.run(main())
print(json.dumps(told))`,
    url,
  );
  assert.deepEqual(JSON.parse(output), [
    ['start_episode', 'take_action', 'get_state', 'list_tasks', 'grade_episode'],
    ['amount', 'mode', 'note', 'weight'],
    { observation: { total: 3, note: 'ready' }, reward: null, done: false },
    { observation: { total: 7, note: '' }, reward: 0.4, done: false, metadata: { added: 4 } },
    ['mine', 1],
    "RuntimeError: Tool 'nope' failed: Unknown tool: 'nope'",
  ]);
});

test('openenv validate --url passes all its criteria, in simulation and in production', async (t) => {
  for (const mode of ['simulation', 'production'] as const) {
    const { url } = await startServer(t, counterEnvironment, { mode });
    const report = JSON.parse(await runOpenEnvCli('validate', '--url', url, '--json'));
    assert.equal(report.passed, true, JSON.stringify(report, null, 2));
    assert.equal(report.mode, mode);
    assert.deepEqual(
      { passed: report.summary.passed_count, total: report.summary.total_count },
      { passed: 6, total: 6 },
    );
  }
});
