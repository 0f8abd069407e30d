import assert from 'node:assert/strict';
import { test } from 'node:test';
import { counterEnvironment } from '../fixtures/counter-environment.ts';
import { runPython } from '../fixtures/python.ts';
import { startServer } from '../fixtures/start-server.ts';

/**
 * schemathesis makes requests from the OpenAPI document, right and wrong ones, and checks that the answers are as the
 * document says. The Task API is left out of one check: it answers 400 for an index out of range, as OpenEnv does. The rest
 * is asked of an environment without splits, whose reset options cannot contradict each other.
 */
async function fuzz(url: string, ...args: string[]): Promise<string> {
  const common = [
    '--max-examples',
    '20',
    '--phases',
    'examples,coverage,fuzzing',
    '--seed',
    '1',
    '--no-color',
  ];
  try {
    return await runPython('-m', 'schemathesis.cli', 'run', `${url}/openapi.json`, ...common, ...args);
  } catch (error) {
    return String((error as { stdout?: string }).stdout ?? error);
  }
}

test('the answers to made-up requests are as the OpenAPI document says', async (t) => {
  const withSplits = await startServer(t, counterEnvironment);
  const { splits: _, ...withoutSplits } = counterEnvironment;
  const { url } = await startServer(t, withoutSplits);
  const [most, tasks] = [
    await fuzz(url, '--exclude-path-regex', 'env_name'),
    await fuzz(
      withSplits.url,
      ...['--include-path-regex', 'env_name', '--exclude-checks', 'positive_data_acceptance'],
    ),
  ];
  for (const output of [most, tasks]) {
    assert.ok(/Test cases:/.test(output) && !/❌|FAILURES|ERRORS/.test(output), output);
  }
});
