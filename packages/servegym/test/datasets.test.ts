import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import {
  type FleetAction,
  type FleetWindowReport,
  fleet,
  inferencegym,
  llmserve,
  SEED_SPLITS,
  type ServeObservation,
  SHIPPED_TABLE_URL,
  type WindowReport,
} from '@servegym/environments';
import { asyncBufferFromFile, parquetMetadataAsync, parquetReadObjects } from 'hyparquet';
import { temporaryFolder } from '../../../maintenance/test-servers/temporary-folder.ts';
import { sourceFolder, sourceHash } from '../src/cli/jobs.ts';
import { runCommand } from './in-process.ts';

const SEEN = ['observation.', 'next_observation.'];
const SERVER = SEEN.map((prefix) => `${prefix}server.`);
const RELATIVE = SEEN.map((prefix) => `${prefix}relative.`);
const FREE = SERVER.map((prefix) => `${prefix}free.`);
const SHARES = ['0', '1', '2'].map((i) => `priority_distribution.${i}`).join(' ');

const ROW = {
  ...columnsOf('INT64', [''], 'episode_id step seed'),
  ...columnsOf('DOUBLE', [''], 'reward'),
  ...columnsOf('BOOLEAN', [''], 'terminated truncated'),
};

const CLASSES = ['interactive', 'batch', 'best_effort'].map((name) => `info.classes.${name}.`);
const OBJECTIVES = ['interactive', 'batch', 'best_effort'].map((name) => `info.slo.${name}.`);
const GPUS = ['info.gpus.0.', 'info.gpus.1.'];
const MEMORY = GPUS.map((gpu) => `${gpu}memory_gib.`);
const SERVE_COLUMNS = {
  ...ROW,
  ...columnsOf('INT64', SEEN, 'queue_depth active_requests eviction_events step_index'),
  ...columnsOf('DOUBLE', SEEN, 'kv_cache_occupancy mean_prompt_length p50_ttft_ms p99_ttft_ms p50_itl_ms'),
  ...columnsOf('DOUBLE', SEEN, 'throughput_tps slo_compliance_rate gpu_memory_used_gb estimated_cost_per_1k'),
  ...columnsOf('DOUBLE', SEEN, 'request_arrival_rate spec_acceptance_rate quality_value'),
  ...columnsOf('UTF8', SEEN, 'task_id'),
  ...columnsOf('DOUBLE', SERVER, 'decode_1_ms decode_64_ms decode_256_ms prefill_1k_ms prefill_8k_ms'),
  ...columnsOf('DOUBLE', SERVER, 'int8_decode_64_ms int4_decode_64_ms int8_quality int4_quality'),
  ...columnsOf('DOUBLE', SERVER, 'draft_ms draft_4_accepted gpu_memory_gb weights_gb reload_s usd_per_hour'),
  ...columnsOf('INT64', SERVER, 'kv_tokens kv_bytes_per_token'),
  ...columnsOf('DOUBLE', SERVER, 'interactive_ttft_ms interactive_tpot_ms batch_ttft_ms batch_tpot_ms'),
  ...columnsOf('DOUBLE', SERVER, 'best_effort_ttft_ms best_effort_tpot_ms reference_cost_per_1k'),
  ...columnsOf('DOUBLE', SERVER, 'throughput_weight slo_weight memory_weight cost_weight'),
  ...columnsOf('DOUBLE', SERVER, 'interactive_weight batch_weight best_effort_weight'),
  ...columnsOf(
    'DOUBLE',
    RELATIVE,
    'prompt_load token_load queue_windows queue_prefill prompt_prefill ttft_p50',
  ),
  ...columnsOf('DOUBLE', RELATIVE, 'ttft_p99 itl_p50 itl_floor kv_held memory_free int8_charge int4_charge'),
  ...columnsOf('BOOLEAN', FREE, 'batch_cap kv_budget_fraction speculation_depth quantization_tier'),
  ...columnsOf('BOOLEAN', FREE, 'prefill_decode_split priority_routing'),
  ...columnsOf('INT64', ['action.'], 'batch_cap speculation_depth'),
  ...columnsOf('DOUBLE', ['action.'], 'kv_budget_fraction'),
  ...columnsOf('UTF8', ['action.'], 'quantization_tier'),
  ...columnsOf('BOOLEAN', ['action.'], 'prefill_decode_split priority_routing'),
  ...columnsOf('DOUBLE', ['info.'], 'window_s window_end_s quality slo_cost'),
  ...columnsOf('DOUBLE', ['info.reward_components.'], 'throughput slo memory cost quality'),
  ...columnsOf('UTF8', ['info.'], 'phase'),
  ...columnsOf('JSON', ['info.'], 'events'),
  ...columnsOf('DOUBLE', OBJECTIVES, 'ttft_ms tpot_ms'),
  ...columnsOf('INT64', CLASSES, 'arrived completed waiting running kv_blocks'),
  ...columnsOf('DOUBLE', CLASSES, 'ttft_p50_ms ttft_p99_ms tpot_p50_ms slo_compliance'),
  ...columnsOf('UTF8', GPUS, 'role'),
  ...columnsOf('INT64', GPUS, 'running waiting kv_blocks_used kv_blocks_total'),
  ...columnsOf('DOUBLE', MEMORY, 'weights draft overhead kv_pool tenant limit'),
  ...columnsOf('BOOLEAN', GPUS, 'reloading'),
};

const DONE = ['action.', 'info.applied_action.'];
const GYM_COLUMNS = {
  ...ROW,
  ...columnsOf(
    'DOUBLE',
    SEEN,
    'queue_depth mean_prompt_len arrival_rate kv_cache_occupancy ttft_p50 tpot_p50',
  ),
  ...columnsOf('DOUBLE', SEEN, 'slo_violation_rate gpu_memory_used_gb spec_accept_rate timestep cost_so_far'),
  ...columnsOf('DOUBLE', [...SEEN, 'info.workload.'], SHARES),
  ...columnsOf('INT64', DONE, 'spec_length batch_size quant_tier'),
  ...columnsOf('DOUBLE', DONE, 'kv_budget'),
  ...columnsOf('BOOLEAN', DONE, 'prefill_disagg'),
  ...columnsOf('INT64', ['info.'], 'timestep episode_length rejected_requests'),
  ...columnsOf('BOOLEAN', ['info.'], 'out_of_memory'),
  ...columnsOf('DOUBLE', ['info.metrics.'], 'ttft_p50_ms ttft_p99_ms tpot_ms tokens_per_sec gpu_memory_gb'),
  ...columnsOf('DOUBLE', ['info.metrics.'], 'cost_per_1k spec_accept_rate'),
  ...columnsOf('INT64', ['info.metrics.'], 'eviction_events slo_violations'),
  ...columnsOf('DOUBLE', ['info.workload.'], 'arrival_rate mean_prompt_len queue_depth'),
  ...columnsOf('INT64', ['info.workload.'], 'prompt_len_bucket'),
  ...columnsOf('BOOLEAN', ['info.workload.'], 'is_burst'),
  ...columnsOf('UTF8', ['info.workload.'], 'phase'),
  ...columnsOf('DOUBLE', ['info.reward_components.'], 'throughput latency violations cost'),
};

/** An observation with its description of the server, and its figures in units of it, in names of their own, as columns have it. */
function flat({
  server: { free, ...figures },
  relative,
  ...seen
}: ServeObservation): Record<string, unknown> {
  const named = (prefix: string, part: object) =>
    Object.fromEntries(Object.entries(part).map(([name, value]) => [`${prefix}.${name}`, value]));
  return {
    ...seen,
    ...named('server', figures),
    ...named('server.free', free),
    ...named('relative', relative),
  };
}

describe('servegym evaluate --record', () => {
  const folder = temporaryFolder();

  async function exported(...args: string[]) {
    const out = join(folder, 'episodes.parquet');
    const { code, stderr, stdout } = await runCommand('evaluate', ...args, '--record', out, '--json');
    assert.equal(stderr, '');
    assert.equal(code, 0);
    const file = await asyncBufferFromFile(out);
    const { key_value_metadata, schema } = await parquetMetadataAsync(file);
    const metadata = Object.fromEntries(key_value_metadata!.map(({ key, value }) => [key, value]));
    const columns = Object.fromEntries(
      schema.slice(1).map(({ name, type, converted_type }) => [name, converted_type ?? type]),
    );
    const rows = (await parquetReadObjects({ file })).map((row) =>
      Object.fromEntries(
        Object.entries(row).map(([name, value]) => [name, typeof value === 'bigint' ? Number(value) : value]),
      ),
    );
    return { report: JSON.parse(stdout), rows, metadata, columns };
  }

  it('writes what the environment shows and pays, window by window', async () => {
    const { rows, metadata, report, columns } = await exported(
      ...['heuristic', '--task', 'static_workload', '--episodes', '2'],
    );
    assert.deepEqual(columns, SERVE_COLUMNS);
    const { windows } = llmserve.tasks.shipped.static_workload;
    assert.equal(rows.length, 2 * windows);
    assert.equal(report.rows, rows.length);
    assert.match(report.simulator_hash, /^[0-9a-f]{64}$/);
    assert.equal(metadata.simulator_hash, report.simulator_hash);
    assert.deepEqual(
      [metadata.environment, metadata.version, metadata.policy, metadata.task],
      ['llmserve', llmserve.version, 'heuristic', 'static_workload'],
    );

    const environment = llmserve.definition().create();
    const seed = SEED_SPLITS.train.first + 1;
    let { observation } = await environment.reset({ task_id: 'static_workload', seed });
    for (const row of rows.slice(windows)) {
      const part = (prefix: string) =>
        Object.fromEntries(
          Object.entries(row).flatMap(([name, value]) =>
            name.startsWith(`${prefix}.`) ? [[name.slice(prefix.length + 1), value]] : [],
          ),
        );
      assert.deepEqual(part('observation'), flat(observation));
      const step = await environment.step(part('action') as never);
      assert.deepEqual(part('next_observation'), flat(step.observation));
      assert.equal(row.reward, step.reward);
      assert.equal(row['info.phase'], step.metadata!.phase);
      assert.equal(row['info.slo_cost'], step.metadata!.slo_cost);
      const { classes, gpus, events } = step.metadata as unknown as WindowReport;
      for (const { name, ...figures } of classes) assert.deepEqual(part(`info.classes.${name}`), figures);
      assert.equal(row['info.gpus.0.memory_gib.kv_pool'], gpus[0].memory_gib.kv_pool);
      assert.equal(row['info.gpus.1.role'], gpus[1].role);
      assert.deepEqual(row['info.events'], events);
      assert.equal(row.truncated, step.done);
      assert.deepEqual([row.episode_id, row.seed, row.terminated], [1, seed, false]);
      ({ observation } = step);
    }
  });

  it('writes episodes of inferencegym, lists and all, and which table they were played on', async () => {
    const { rows, metadata, columns, report } = await exported(
      ...['--env', 'inferencegym', 'random', '--task', '1', '--episodes', '1'],
    );
    assert.deepEqual(columns, GYM_COLUMNS);
    assert.equal(rows.length, 200);
    assert.equal(metadata.environment, 'inferencegym');
    const simulator = sourceHash([sourceFolder('@servegym/simulator')]);
    assert.notEqual(metadata.simulator_hash, simulator, 'what `inferencegym` is made of is more');
    const table = createHash('sha256').update(readFileSync(SHIPPED_TABLE_URL)).digest('hex');
    assert.deepEqual([metadata.table_hash, report.table_hash], [table, table]);
    assert.equal(rows.at(-1)!.truncated, true);

    const environment = inferencegym.definition().create();
    await environment.reset({ task_id: 1, seed: SEED_SPLITS.train.first });
    for (const row of rows) {
      const { observation } = await environment.step({
        kv_budget: row['action.kv_budget'],
        spec_length: row['action.spec_length'],
        batch_size: row['action.batch_size'],
        prefill_disagg: row['action.prefill_disagg'],
        quant_tier: row['action.quant_tier'],
      });
      const { priority_distribution: shares } = observation;
      assert.deepEqual(
        shares.map((_, i) => row[`next_observation.priority_distribution.${i}`]),
        shares,
      );
      assert.equal(row['next_observation.cost_so_far'], observation.cost_so_far);
    }
  });

  it('writes episodes of fleet, with its replicas as JSON', async () => {
    const { rows, metadata, columns } = await exported(
      ...['--env', 'fleet', 'hpa:30', '--task', 'agents', '--episodes', '1'],
    );
    assert.deepEqual([rows.length, metadata.environment, metadata.policy], [240, 'fleet', 'hpa:30']);
    const environment = fleet.definition().create();
    await environment.reset({ task_id: 'agents', seed: SEED_SPLITS.train.first });
    for (const row of rows.slice(0, 20)) {
      const knobs = Object.keys(fleet.tasks.shipped.agents.defaultAction);
      const action = Object.fromEntries(knobs.map((knob) => [knob, Number(row[`action.${knob}`])]));
      const { observation, reward, metadata } = await environment.step(action as FleetAction);
      assert.equal(row.reward, reward);
      assert.equal(
        row['next_observation.interactive.slo_attainment'],
        observation.interactive.slo_attainment,
      );
      const { replicas, classes } = metadata as unknown as FleetWindowReport;
      assert.deepEqual(row['info.replicas'], replicas);
      assert.equal(row['info.classes.batch.attained'], classes[1]!.attained);
    }
    assert.equal(columns['info.classes.batch.attained'], 'INT64');
  });

  for (const [what, args, message] of [
    [
      'for an unknown task',
      ['default', '--task', 'x', '--record', 'x'],
      /[Ee]xpected a task of llmserve, all or one of static/,
    ],
    [
      'where it cannot write',
      ['default', '--task', 'static_workload', '--episodes', '1', '--record', '/nowhere/x.parquet'],
      /cannot write \/nowhere\/x\.parquet: there is no such folder/,
    ],
  ] as const) {
    it(`ends with exit code 2: ${what}`, async () => {
      const { code, stderr } = await runCommand('evaluate', ...args);
      assert.match(stderr, message);
      assert.equal(code, 2);
    });
  }
});

/** Columns of one type, under each of the paths. */
function columnsOf(type: string, paths: readonly string[], names: string): Record<string, string> {
  return Object.fromEntries(
    paths.flatMap((path) => names.split(' ').map((name) => [`${path}${name}`, type])),
  );
}
