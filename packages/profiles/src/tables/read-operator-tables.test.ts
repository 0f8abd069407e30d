import assert from 'node:assert/strict';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, describe, it } from 'node:test';
import { temporaryFolder } from '../../../../maintenance/test-servers/temporary-folder.ts';
import { findGpu } from '../data/gpu.ts';
import { operatorRows, writeRows, writeTables } from './operator-rows.fixture.ts';
import { readOperatorTables } from './read-operator-tables.ts';

const H100 = findGpu('H100');

describe('the kernel tables of a folder', () => {
  const folder = temporaryFolder();
  before(() => {
    writeTables(folder, 'h100_sxm', [
      ['vllm', '0.14.0'],
      ['vllm', '0.24.0'],
      ['sglang', '0.5.9'],
      ['sglang', '0.5.14'],
    ]);
  });

  it('are read with what they were measured on', async () => {
    const { tables, measuredOn, engine, versions } = await readOperatorTables(
      folder,
      findGpu('GH200'),
      'vLLM',
    );
    assert.equal(measuredOn, H100);
    assert.deepEqual(engine, { name: 'vLLM', version: '0.24.0' });
    assert.equal(
      versions.join(),
      'gemm 0.24.0,context_attention 0.24.0,generation_attention 0.24.0,custom_allreduce 0.24.0,moe 0.24.0,dsa_context_module 0.24.0,dsa_generation_module 0.24.0,gdn 0.24.0',
    );
    assert.deepEqual(tables.gemmPrecisions, ['bfloat16', 'fp8']);
    assert.equal(tables.gemmUs('bfloat16', 5, 512, 4096), (512 * 4096) / 1e6);
  });

  it('are of the newest version that is not newer than the one asked for, else of the oldest', async () => {
    const taken = {
      vllm: '0.24.0',
      'vllm-0.24': '0.24.0',
      'vllm-0.23': '0.14.0',
      'vllm-0.9': '0.14.0',
      'vllm-1': '0.24.0',
      'sglang-0.5.10': '0.5.9',
      'sglang-0.5': '0.5.14',
    };
    for (const [engine, version] of Object.entries(taken)) {
      assert.equal((await readOperatorTables(folder, H100, engine)).engine.version, version, engine);
    }
  });

  it('have the experts of the other engine where their own lack the precision or shape', async () => {
    const both = mkdtempSync(join(folder, 'both-'));
    writeTables(both, 'h100_sxm', [
      ['vllm', '0.24.0'],
      ['sglang', '0.5.14'],
    ]);
    const row = { ...operatorRows().moe![0], moe_dtype: 'int4_wo' };
    writeRows(join(both, 'systems/data/h100_sxm/moe/sglang/0.5.14'), 'moe', [row]);
    const { tables } = await readOperatorTables(both, H100, 'vllm');
    assert.deepEqual(tables.expertPrecisions, ['bfloat16', 'int4_wo']);
  });

  it('have the experts of an older version as they changed on another GPU of the architecture', async () => {
    const both = mkdtempSync(join(folder, 'older-'));
    writeTables(both, 'h100_sxm', [['vllm', '0.24.0']]);
    writeTables(both, 'h200_sxm', [
      ['vllm', '0.19.0'],
      ['vllm', '0.24.0'],
    ]);
    const slower = operatorRows().moe!.map((row) => ({
      ...row,
      latency: Number(row.latency) * (row.num_tokens === 1n ? 1 : 1.5),
    }));
    writeRows(join(both, 'systems/data/h200_sxm/moe/vllm/0.19.0'), 'moe', slower);
    const shape = { hidden: 1024, inter: 512, experts: 8, perToken: 2, tensorParallel: 1, expertParallel: 1 };
    const read = async (asked: string) => {
      const { tables, versions } = await readOperatorTables(both, H100, asked);
      const us = (tokens: number) => tables.expertsUs(['bfloat16'], shape, tokens);
      return { us, experts: versions.filter((each) => each.startsWith('moe')).join() };
    };
    const [now, before] = [await read('vllm'), await read('vllm-0.11')];
    assert.equal(now.experts, 'moe 0.24.0');
    assert.equal(before.experts, 'moe 0.24.0,moe 0.19.0 of H200-141GB, by its times against 0.24.0');
    assert.ok(Math.abs(before.us(16_384) / now.us(16_384) - 1.5) < 1e-9);
    assert.ok(Math.abs(before.us(1) / now.us(1) - 1) < 1e-9);
  });

  it('may lie at the top of the folder', async () => {
    const read = await readOperatorTables(join(folder, 'systems', 'data'), H100, 'vllm');
    assert.equal(read.engine.version, '0.24.0');
  });

  it('are refused where they are missing or broken, with what there is', async () => {
    const broken = mkdtempSync(join(folder, 'broken-'));
    writeTables(broken, 'h100_sxm', [['vllm', '0.24.0']]);
    writeFileSync(join(broken, 'systems/data/h100_sxm/moe/vllm/0.24.0/moe_perf.parquet'), 'no');
    const without = mkdtempSync(join(folder, 'without-'));
    writeTables(without, 'h100_sxm', [['sglang', '0.5.14']]);
    const empty = mkdtempSync(join(folder, 'empty-'));
    const refused: [string, Parameters<typeof readOperatorTables>, RegExp][] = [
      ['no tables', [empty, H100, 'vllm'], /systems\/data\/h100_sxm, got a folder without them/],
      ['another GPU', [folder, findGpu('A10'), 'vllm'], /one of h100-80gb, gh200-96gb, .*got a10-24gb/],
      ['another engine', [folder, H100, 'tgi-3'], /an engine such as vllm, sglang.*got tgi-3/],
      ['no version', [folder, H100, 'vllm-new'], /a version such as vllm-0.24, got vllm-new/],
      ['tables of others', [without, H100, 'vllm'], /gemm tables of vllm for h100-80gb, got those of sglang/],
      [
        'a broken file',
        [broken, H100, 'vllm'],
        /moe_perf.parquet: expected a Parquet file, got one that cannot/,
      ],
    ];
    for (const [what, args, message] of refused) {
      await assert.rejects(readOperatorTables(...args), (error: Error & { code?: string }) => {
        assert.match(error.message, message, what);
        assert.equal(error.code, 'CALIBRATION_TABLES');
        return true;
      });
    }
  });
});
