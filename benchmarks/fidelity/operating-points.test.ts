import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { LocalJobs } from '@servegym/jobs';
import {
  findGpu,
  findModel,
  findProfile,
  readOperatorTables,
  statedOverheads,
  tableProfile,
} from '@servegym/profiles';
import { writeTables } from '../../packages/profiles/src/tables/operator-rows.fixture.ts';
import { FIDELITY_JOB_KINDS } from './assess-fidelity.ts';
import { assessPoints, parseAnswers, simulatePoint } from './assess-points.ts';
import { pointsReport } from './fidelity-report.ts';
import { BURST_MS, withConstants } from './left-out-constants.ts';
import { assumptionGroups, type PointRow, parseOperatingPoints, pointGroups } from './operating-points.ts';

const COLUMNS =
  'id,silicon_data_source,backend,backend_version,model_path,system,precision,mode,isl,osl,batch_size,tp_size,attention_dp_size,moe_tp_size,moe_ep_size,silicon_ttft_ms,silicon_tpot_ms';

/** A row of the table; what is not given is of a small model on one H100. */
function row(fields: Readonly<Record<string, string | number>>): string {
  const usual: Record<string, string | number> = {
    ...{
      id: 'a',
      silicon_data_source: 'x; silicon_concurrency=4',
      backend: 'vllm',
      backend_version: '0.19.0',
    },
    ...{ model_path: 'meta-llama/Llama-3.2-1B', system: 'h100_sxm', precision: 'bf16', mode: 'agg' },
    ...{ isl: 100, osl: 20, batch_size: 4, tp_size: 1, attention_dp_size: 1, moe_tp_size: 1, moe_ep_size: 1 },
    ...{ silicon_ttft_ms: 10, silicon_tpot_ms: 2 },
  };
  return COLUMNS.split(',')
    .map((name) => fields[name] ?? usual[name])
    .join(',');
}

function table(...rows: readonly Readonly<Record<string, string | number>>[]): string {
  return [COLUMNS, ...rows.map(row)].join('\n');
}

describe('operating points', () => {
  it('leave out the rows that are held out, and have no others where those are asked for', () => {
    const text = table(
      { id: 'open' },
      { id: 'sglang', backend: 'sglang', model_path: 'Qwen/Qwen3-32B' },
      { id: 'trtllm', backend: 'trtllm' },
      { id: 'vllm 32b', model_path: 'Qwen/Qwen3-32B', silicon_ttft_ms: 'unreadable' },
      { id: 'vllm 32b fp4', model_path: 'nvidia/Qwen3-32B-NVFP4' },
      { id: 'vllm 70b', model_path: 'meta-llama/Llama-3.1-70B' },
      { id: 'kimi', backend: 'sglang', model_path: 'moonshotai/Kimi-K2.5' },
      { id: 'b300', system: 'b300_sxm' },
      { id: 'gb200', system: 'gb200' },
      { id: 'gb300', system: 'gb300' },
      { id: 'apart', mode: 'disagg' },
    );
    const ids = parseOperatingPoints(text, 'points.csv').map(({ id }) => id);
    assert.deepEqual(ids, ['open', 'sglang']);
    const readable = text.replace('unreadable', '10');
    assert.deepEqual(
      parseOperatingPoints(readable, 'points.csv', true).map(({ id }) => id),
      ['vllm 32b', 'vllm 32b fp4', 'vllm 70b', 'kimi', 'b300', 'gb200', 'gb300'],
    );
  });

  it('have the division over GPUs that each source means', () => {
    const divisions = [
      [[8, 1, 8, 1], { tensor: 8, data: 1, expert: 1 }],
      [[64, 1, 8, 8], { tensor: 8, data: 1, expert: 8 }],
      [[4, 1, 1, 4], { tensor: 4, data: 1, expert: 4 }],
      [[4, 4, 1, 16], { tensor: 4, data: 1, expert: 4 }],
      [[2, '', 4, 1], { tensor: 2, data: 2, expert: 1 }],
      [[8, '', 1, 1], { tensor: 8, data: 1, expert: 1 }],
    ] as const;
    for (const [[tp_size, attention_dp_size, moe_tp_size, moe_ep_size], expected] of divisions) {
      const text = table({ tp_size, attention_dp_size, moe_tp_size, moe_ep_size });
      const [{ tensor, data, expert }] = parseOperatingPoints(text, 'points.csv');
      assert.deepEqual({ tensor, data, expert }, expected);
    }
  });

  it('have the concurrency of all replicas together', () => {
    const text = table({ silicon_data_source: 'x', batch_size: 3, attention_dp_size: 4 }, {});
    assert.deepEqual(
      parseOperatingPoints(text, 'points.csv').map(({ concurrency }) => concurrency),
      [12, 4],
    );
  });

  it('have what their campaign is known to have done, and else plain assumptions and the names of what is unknown', () => {
    const r1 = {
      backend: 'sglang',
      system: 'b200_sxm',
      model_path: 'deepseek-ai/DeepSeek-R1',
      precision: 'fp8',
    };
    const run = 'db-dump/2026-04-27; silicon_concurrency=';
    const gap = '/aic-auto-gap-analysis/data/h200_sxm/x.csv; silicon_concurrency=4';
    const minimax = { model_path: 'MiniMaxAI/MiniMax-M2.5', system: 'b200_sxm', precision: 'fp4', isl: 1024 };
    const gptOss = { model_path: 'openai/gpt-oss-120b', system: 'h100_sxm', precision: 'fp4' };
    const points = parseOperatingPoints(
      table(
        { silicon_data_source: `${run}4` },
        { ...r1, tp_size: 8, silicon_data_source: `${run}4` },
        { ...r1, tp_size: 8, silicon_data_source: `${run}16` },
        { ...r1, tp_size: 4, silicon_data_source: `${run}32` },
        { ...minimax, silicon_data_source: `${run}4` },
        { ...r1, tp_size: 8, silicon_data_source: gap },
        { ...r1, tp_size: 8, backend_version: '0.5.1.post1', silicon_data_source: gap },
        { ...gptOss, silicon_data_source: `${run}512` },
        { ...r1, tp_size: 8, backend_version: '0.5.9', isl: 8192, silicon_data_source: `${run}64` },
        { ...minimax, backend_version: '', silicon_data_source: `${run}4` },
        { silicon_data_source: 'nobody knows' },
        { ...minimax, system: 'h200_sxm', tp_size: 8, precision: 'fp8', silicon_data_source: `${run}4` },
      ),
      'points.csv',
    );
    const plain = {
      ...{ requestsEach: 10, leastLength: 0.8, repeatsPrompts: false, budget: 8192, memoryShare: null },
      ...{ kvCache: 'FP16', receiveEvery: 1, asyncScheduling: false, mixedChunk: false, runsAtOnce: null },
      ...{ drafts: 0, release: null, expertParallel: false },
    };
    const equal = { ...plain, leastLength: 1, budget: 1600 };
    const large = { ...plain, budget: 32_768, memoryShare: 0.82, kvCache: 'FP8' };
    assert.deepEqual(
      points.map(({ settings }) => settings),
      [
        plain,
        { ...large, receiveEvery: 10 },
        { ...large, receiveEvery: 30 },
        { ...plain, memoryShare: 0.95, kvCache: 'FP8', receiveEvery: 10 },
        { ...plain, kvCache: 'FP8', budget: 2048 },
        ...[{ ...equal, mixedChunk: true }, equal, { ...plain, asyncScheduling: true }],
        { ...large, receiveEvery: 30, drafts: 0 },
        ...[plain, plain, { ...plain, memoryShare: 0.95, expertParallel: true }],
      ],
    );
    const load = ['requestsEach', 'leastLength', 'repeatsPrompts'];
    assert.deepEqual(
      points.map(({ unknown }) => unknown),
      [
        [],
        [],
        [],
        [],
        [],
        ['repeatsPrompts'],
        ['repeatsPrompts'],
        ['runsAtOnce'],
        ['drafts'],
        ['version'],
        ...[load, []],
      ],
    );
  });

  it('are refused with the line that is wrong', () => {
    for (const [text, line] of [
      [table({}, { isl: 0 }), 3],
      [table({ silicon_tpot_ms: '' }), 2],
      ['id,mode\na,agg', 1],
      [`${COLUMNS}\na,b`, 2],
    ] as const) {
      assert.throws(() => parseOperatingPoints(text, 'points.csv'), {
        code: 'CALIBRATION_FILE',
        message: new RegExp(`^points.csv:${line}: expected .*, got `),
      });
    }
  });
});

describe('operating points', () => {
  const jobs = new LocalJobs({ kinds: FIDELITY_JOB_KINDS, threads: 1 });
  let folder: string;
  let rows: PointRow[];
  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'points-'));
    writeTables(folder, 'h100_sxm', [['vllm', '0.24.0']]);
    const points = table(
      { id: 'a' },
      { id: 'b' },
      { id: 'c', model_path: 'nobody/knows', silicon_tpot_ms: 4 },
    );
    writeFileSync(join(folder, 'systems', 'silicon_sample.csv'), points);
    const answers = '{"id": "a", "ttft_ms": 15, "tpot_ms": 1}\n{"id": "b", "error": "no tables"}';
    rows = await assessPoints(jobs, { folder, answers: parseAnswers(answers) });
  });
  after(async () => {
    await jobs.close();
    rmSync(folder, { recursive: true });
  });

  it('answers points from kernel tables, and says why where it cannot', () => {
    const [a, b, c] = rows;
    assert.ok('ttftMs' in a.ours && a.ours.ttftMs > 1 && a.ours.tpotMs > 0.1, JSON.stringify(a));
    assert.deepEqual(a.ours, b.ours);
    assert.match('error' in c.ours ? c.ours.error : '', /expected a known model .*nobody\/knows/);
    assert.deepEqual(
      [a, b, c].map(({ theirs }) => theirs),
      [{ ttftMs: 15, tpotMs: 1 }, { error: 'no tables' }, { error: 'no answer' }],
    );
  });

  it('has requests wait until SGLang looks for them', () => {
    const [point] = parseOperatingPoints(table({ backend: 'sglang' }), 'points.csv');
    const profile = findProfile('h100-80gb-llama-3-8b');
    const [always, often] = [1, 10].map((receiveEvery) =>
      simulatePoint(
        { ...point, concurrency: 16, outputTokens: 400, settings: { ...point.settings, receiveEvery } },
        { profile, weights: 'FP16', burstMs: BURST_MS },
      ),
    );
    assert.ok('ttftMs' in often && 'ttftMs' in always);
    // Half of ten iterations, and less where it looks after the prefill of another request.
    assert.ok(Math.abs((often.ttftMs - always.ttftMs) / often.tpotMs - 5) < 2);
  });

  it('answers rows of unknown campaigns under each assumption: repeated prompts come from the prefix cache', async () => {
    const source = 'nobody knows; silicon_concurrency=';
    const long = { isl: 4000, osl: 20 };
    writeFileSync(
      join(folder, 'systems', 'silicon_sample.csv'),
      // Of 100 prompts: most of 440 requests find theirs in the cache, and none of 88.
      table(
        { id: 'most', ...long, silicon_data_source: `${source}40` },
        { id: 'none', ...long, silicon_data_source: `${source}8` },
      ),
    );
    const [most, none] = await assessPoints(jobs, { folder, leftOut: false });
    const tpot = ({ ours, assumed }: PointRow) =>
      [ours, assumed['prompts repeated']].map((answer) => ('tpotMs' in answer ? answer.tpotMs : 0));
    assert.deepEqual(Object.keys(most.assumed), ['prompts repeated', 'lengths fixed', 'one batch']);
    assert.ok(tpot(most)[1] < 0.6 * tpot(most)[0], `${tpot(most)}`);
    assert.ok(Math.abs(tpot(none)[1] / tpot(none)[0] - 1) < 0.15, `${tpot(none)}`);
    const groups = assumptionGroups([most, none]);
    assert.deepEqual(
      groups.map(({ assumption, rows: count }) => [assumption, count]),
      ['plain', 'prompts repeated', 'lengths fixed', 'one batch'].map((name) => [name, 2]),
    );
  });

  it('moves a law by its constants as composing it anew does', async () => {
    const { tables, engine, measuredOn } = await readOperatorTables(folder, findGpu('h100-80gb'), 'vllm');
    const [point] = parseOperatingPoints(table({}), 'points.csv');
    const before = statedOverheads('vllm', null).values;
    const change = { iterationUs: 300, perLayerUs: 9, perSequenceUs: 20, prefillPerLayerUs: 100 };
    const profileOf = (overheads: typeof before) =>
      tableProfile(tables, {
        ...{ gpu: findGpu('h100-80gb'), measuredOn, model: findModel('meta-llama/Llama-3.2-1B') },
        ...{ parallel: { tensor: 1, pipeline: 1, data: 1, expert: 1 }, weights: 'FP16' as const },
        ...{ engine, overheads, source: 'kernel tables', command: 'test' },
      }).profile;
    const served = { profile: profileOf(before), weights: 'FP16' as const, burstMs: BURST_MS };
    const sync = { paddedExpertsUs: 120, syncPerSequenceUs: 20, burstMs: BURST_MS };
    const moved = withConstants({ served, points: [point] }, { ...before, ...change, ...sync });
    const composed = profileOf({ ...before, ...change });
    const answers = [moved.served.profile, composed, served.profile].map((profile) =>
      simulatePoint(point, { ...served, profile }),
    );
    const [ours, theirs, old] = answers.map((answer) =>
      'error' in answer ? { ttftMs: 0, tpotMs: 0 } : answer,
    );
    for (const what of ['ttftMs', 'tpotMs'] as const) {
      assert.ok(Math.abs(ours[what] / theirs[what] - 1) < 0.01, `${what}: ${ours[what]} ${theirs[what]}`);
      assert.ok(ours[what] > 1.1 * old[what]);
    }
  });

  it('fits constants to rows of other campaigns, and of none of which something is unknown', async () => {
    const source = (date: string) => ({
      silicon_data_source: `source_file=2026-${date}; silicon_concurrency=4`,
    });
    const slow = { silicon_tpot_ms: 20, silicon_ttft_ms: 200 };
    writeFileSync(
      join(folder, 'systems', 'silicon_sample.csv'),
      table(
        ...[100, 200, 400, 800].map((isl) => ({ id: `slow ${isl}`, isl, ...source('03'), ...slow })),
        ...[100, 200].map((isl) => ({ id: `other ${isl}`, isl, ...source('04'), backend_version: '0.18.0' })),
        { id: 'unknown', silicon_data_source: 'x; silicon_concurrency=4', silicon_tpot_ms: 0.001 },
      ),
    );
    const all = await assessPoints(jobs, { folder });
    const tpot = (row: PointRow, what: 'none' | 'campaign') => {
      const answer = row.refitted![what];
      return 'error' in answer ? 0 : answer.tpotMs;
    };
    const [slowest, other, unknown] = ['slow 100', 'other 100', 'unknown'].map(
      (id) => all.find(({ point }) => point.id === id)!,
    );
    // The slow server pulls the constants up wherever it is not left out.
    assert.ok(tpot(slowest, 'none') > 1.5 * tpot(slowest, 'campaign'), JSON.stringify(slowest));
    assert.ok(tpot(other, 'campaign') >= tpot(other, 'none'), JSON.stringify(other));
    assert.equal(tpot(unknown, 'campaign'), tpot(unknown, 'none'));
  });

  it('counts failures and averages errors over the rows that have an answer', () => {
    const [all] = pointGroups(
      rows.map((each) => ({ ...each, ours: 'error' in each.ours ? each.ours : { ttftMs: 11, tpotMs: 1.6 } })),
    );
    assert.equal(all.rows, 3);
    assert.equal(all.ours.failed, 1);
    assert.ok(Math.abs(all.ours.ttft! - 10) < 1e-9 && Math.abs(all.ours.tpot! - 20) < 1e-9);
    assert.deepEqual(all.theirs, { failed: 2, ttft: 50, tpot: 50, ttftMedian: 50, tpotMedian: -50 });
  });

  it('sets points apart that agree in all labels but not in their TPOT', () => {
    const r1 = { backend: 'sglang', model_path: 'deepseek-ai/DeepSeek-R1', precision: 'fp8' };
    const v3 = { ...r1, model_path: 'deepseek-ai/DeepSeek-V3' };
    const points = parseOperatingPoints(
      table(
        { ...r1, id: 'a', silicon_tpot_ms: 6 },
        { ...v3, id: 'b', silicon_tpot_ms: 9 },
        { ...r1, id: 'c', silicon_tpot_ms: 9.1, silicon_ttft_ms: 20 },
        { ...r1, id: 'of a longer prompt', silicon_tpot_ms: 12, isl: 200 },
        { ...r1, id: 'nearly equal', silicon_tpot_ms: 12.5, isl: 200 },
      ),
      'points.csv',
    );
    const groups = pointGroups(
      points.map((point) => ({
        ...{ point, ours: { ttftMs: 10, tpotMs: 9 } },
        ...{ assumed: {}, refitted: null, theirs: null },
      })),
    );
    const twins = groups.filter(({ group }) => group.startsWith('equal labels'));
    assert.deepEqual(
      twins.map(({ group, rows: count, ours }) => [group, count, ours.tpot?.toFixed(2)]),
      [
        ['equal labels, the faster server', 1, '50.00'],
        ['equal labels, the slower server', 2, '0.55'],
      ],
    );
  });

  it('is told in Markdown, with the reasons of failures', () => {
    const report = pointsReport(rows);
    assert.match(
      report,
      /^\| all \| 3 \| 1 \|( [\d.]+ % \|){8}( [+-][\d.]+ % \|){2} 2 \| 50\.0 % \| 50\.0 % \|/m,
    );
    assert.match(report, /^- 1 rows: knows on h100_sxm: expected a known model/m);
    assert.doesNotMatch(report, /SGLang\n/);
  });

  it('refuses answers that are none', () => {
    for (const answers of ['{"id": "a"}', 'no JSON'])
      assert.throws(() => parseAnswers(answers), { code: 'CALIBRATION_FILE', message: /answers:1/ });
  });
});
