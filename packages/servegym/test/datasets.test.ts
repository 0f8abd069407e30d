import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { llmserve, SEED_SPLITS, SERVE_TASKS } from '@servegym/environments';
import { asyncBufferFromFile, parquetMetadataAsync, parquetReadObjects } from 'hyparquet';
import { runServegym } from './serve-process.ts';

describe('servegym datasets export', () => {
  let folder: string;
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'servegym-datasets-'));
  });
  after(() => rmSync(folder, { recursive: true }));

  async function exported(...args: string[]) {
    const out = join(folder, 'episodes.parquet');
    const { code, stderr, stdout } = await runServegym('datasets', 'export', ...args, '--out', out, '--json');
    assert.equal(stderr, '');
    assert.equal(code, 0);
    const file = await asyncBufferFromFile(out);
    const { key_value_metadata } = await parquetMetadataAsync(file);
    const metadata = Object.fromEntries(key_value_metadata!.map(({ key, value }) => [key, value]));
    return { report: JSON.parse(stdout), rows: await parquetReadObjects({ file }), metadata };
  }

  it('writes what the environment shows and pays, window by window', async () => {
    const { rows, metadata, report } = await exported(
      ...['--agent', 'heuristic', '--task', 'static_workload', '--episodes', '2'],
    );
    const { windows } = SERVE_TASKS.static_workload;
    assert.equal(rows.length, 2 * windows);
    assert.equal(report.rows, rows.length);
    assert.match(report.simulator_hash, /^[0-9a-f]{64}$/);
    assert.equal(metadata.simulator_hash, report.simulator_hash);
    assert.deepEqual(
      [metadata.environment, metadata.version, metadata.policy, metadata.task],
      ['llmserve', llmserve.version, 'heuristic', 'static_workload'],
    );

    const environment = llmserve.create();
    const seed = SEED_SPLITS.train.first + 1;
    let { observation } = await environment.reset({ task_id: 'static_workload', seed });
    for (const row of rows.slice(windows)) {
      const part = (prefix: string) =>
        Object.fromEntries(
          Object.entries(row).flatMap(([name, value]) =>
            name.startsWith(`${prefix}.`) ? [[name.slice(prefix.length + 1), value]] : [],
          ),
        );
      assert.deepEqual(part('observation'), { ...observation });
      const step = await environment.step(part('action') as never);
      assert.deepEqual(part('next_observation'), { ...step.observation });
      assert.equal(row.reward, step.reward);
      assert.equal(row['info.phase'], step.metadata!.phase);
      assert.equal(row['info.slo_cost'], step.metadata!.slo_cost);
      assert.equal(row.truncated, step.done);
      assert.deepEqual([row.episode_id, row.seed, row.terminated], [1, seed, false]);
      ({ observation } = step);
    }
  });

  it('writes episodes of inferencegym', async () => {
    const { rows, metadata } = await exported(
      ...['--env', 'inferencegym', '--agent', 'random', '--task', '1', '--episodes', '1'],
    );
    assert.equal(rows.length, 200);
    assert.equal(metadata.environment, 'inferencegym');
    assert.equal(rows.at(-1)!.truncated, true);
  });

  for (const [what, args, message] of [
    [
      'for an unknown task',
      ['--agent', 'default', '--task', 'x', '--out', 'x'],
      /expected --task, one of static/,
    ],
    [
      'where it cannot write',
      ['--agent', 'default', '--task', 'static_workload', '--episodes', '1', '--out', '/nowhere/x.parquet'],
      /cannot write \/nowhere\/x\.parquet: there is no such folder/,
    ],
  ] as const) {
    it(`ends with exit code 2: ${what}`, async () => {
      const { code, stderr } = await runServegym('datasets', 'export', ...args);
      assert.match(stderr, message);
      assert.equal(code, 2);
    });
  }
});
