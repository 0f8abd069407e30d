import assert from 'node:assert/strict';
import { execFile, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { promisify } from 'node:util';
import { FeatureEncoder } from '@servegym/agents';
import { fleet, inferencegym, llmserve } from '@servegym/environments';
import { RandomStream } from '@servegym/simulator';

const python =
  process.env.SERVEGYM_PYTHON ?? assert.fail('SERVEGYM_PYTHON is not set. Run the tests with `npm test`.');

/** Wanders through the bins, keeping most of them: changes of precision leave windows without arrivals to measure. */
function wanderingBins(sizes: readonly number[], steps: number): number[][] {
  const draws = new RandomStream(9, 'bins');
  let bins = sizes.map(() => 0);
  return Array.from({ length: steps }, () => {
    bins = bins.map((bin, knob) => (draws.uniform() < 0.15 ? draws.integer(0, sizes[knob]! - 1) : bin));
    return bins;
  });
}

const SEED = 4;
const EPISODES = [
  {
    definition: llmserve.definition(),
    taskId: 'bursty_workload',
    bins: llmserve.bins,
    features: [...llmserve.features.filter(({ one_server }) => !one_server), ...llmserve.serverFeatures],
    initial: llmserve.choose({ task_id: 'bursty_workload' }).defaultAction,
  },
  {
    definition: fleet.definition(),
    taskId: 'agents',
    // Masked in this task.
    bins: { ...fleet.bins, second_replicas: [0] },
    features: [...fleet.features, ...fleet.serverFeatures],
    initial: fleet.tasks.shipped.agents.defaultAction,
  },
  {
    definition: inferencegym.definition(),
    taskId: 3,
    bins: inferencegym.bins,
    features: inferencegym.features,
    initial: inferencegym.defaultAction,
  },
].map((episode) => {
  const values: Readonly<Record<string, readonly unknown[]>> = episode.bins;
  const knobs = Object.keys(episode.definition.action.parse(episode.initial));
  const sizes = knobs.map((knob) => values[knob]!.length);
  const actionOf = (row: readonly number[]) =>
    Object.fromEntries(knobs.map((knob, i) => [knob, values[knob]![row[i]!]]));
  return { ...episode, actionOf, rows: wanderingBins(sizes, 70) };
});

/** What Python shows of each episode. */
function shownByPython(): { names: string[]; single: number[][]; vector: number[][] }[] {
  const asked = EPISODES.map(({ definition, taskId, rows }) => {
    return { environment: definition.id, task_id: taskId, seed: SEED, actions: rows };
  });
  const program = join(import.meta.dirname, 'encoded_episode.py');
  const { stdout, stderr, status } = spawnSync(python, [program], {
    ...{ input: JSON.stringify(asked), encoding: 'utf8', maxBuffer: 2 ** 26 },
  });
  assert.equal(status, 0, stderr);
  return JSON.parse(stdout);
}

/** What TypeScript's encoder shows of an episode. */
async function shownByTypeScript({
  definition,
  taskId,
  features,
  initial,
  rows,
  actionOf,
}: (typeof EPISODES)[number]): Promise<number[][]> {
  const environment = definition.create();
  const encoder = new FeatureEncoder(features);
  const into = new Float32Array(encoder.size);
  const { observation: first } = await environment.reset({ task_id: taskId, seed: SEED });
  encoder.encode(first, initial, into);
  const shown = [[...into]];
  for (const row of rows) {
    const { observation } = await environment.step(actionOf(row) as never);
    encoder.encode(observation, actionOf(row), into);
    shown.push([...into]);
  }
  return shown;
}

function assertClose(got: readonly number[][], expected: readonly number[][], within: number): void {
  assert.equal(got.length, expected.length);
  for (const [step, row] of expected.entries()) {
    for (const [i, value] of row.entries()) {
      const distance = Math.abs(got[step]![i]! - value);
      assert.ok(
        distance <= within * Math.max(1, Math.abs(value)),
        `${step}, ${i}: ${got[step]![i]}, ${value}`,
      );
    }
  }
}

describe('the features of Python', () => {
  const shown = shownByPython();
  for (const [i, episode] of EPISODES.entries()) {
    it(`are those of TypeScript on a played episode of ${episode.definition.id}`, async () => {
      const { names, single, vector } = shown[i]!;
      const expected = await shownByTypeScript(episode);
      assert.deepEqual(
        names,
        episode.features.map(({ name }) => name),
      );
      // The last place of a float32; over the wire of vectors, the figures themselves come as float32.
      assertClose(single, expected, 2 ** -23);
      assertClose(vector, expected, 2 ** -20);
    });
  }
});

/** Pytest's report of each test of this folder, and its output where there is no such report. */
async function runPytest(): Promise<{ output: string; report: string }> {
  const folder = mkdtempSync(join(tmpdir(), 'servegym-pytest-'));
  const report = join(folder, 'report.xml');
  const options = ['-q', '-p', 'no:cacheprovider', '--tb=short', `--junitxml=${report}`];
  try {
    const { stdout } = await promisify(execFile)(python, [
      '-m',
      'pytest',
      ...options,
      import.meta.dirname,
    ]).catch((error: { stdout: string; stderr: string }) => ({ stdout: `${error.stdout}${error.stderr}` }));
    return { output: stdout, report: readFileSync(report, 'utf8') };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const { output, report } = await runPytest();

describe('the Python package', () => {
  const cases = [
    ...report.matchAll(/<testcase classname="([^"]*)" name="([^"]*)"[^>]*?(\/>|>.*?<\/testcase>)/gs),
  ];
  it('has tests', () => assert.ok(cases.length > 10, output));
  for (const [, module, name, body] of cases) {
    it(`${module?.split('.').at(-1)}: ${name?.replaceAll('_', ' ')}`, () => {
      assert.doesNotMatch(body ?? '', /<(failure|error|skipped)/, output);
    });
  }
});
