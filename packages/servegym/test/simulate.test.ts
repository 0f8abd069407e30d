import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { findProfile } from '@servegym/profiles';
import { asyncBufferFromFile, parquetReadObjects } from 'hyparquet';
import { runServegym } from '../../../maintenance/test-servers/servegym.ts';
import { temporaryFolder } from '../../../maintenance/test-servers/temporary-folder.ts';

const fixtures = join(import.meta.dirname, 'fixtures');
const csv = join(fixtures, 'trace.csv');
const jsonl = join(fixtures, 'trace.jsonl');
const profile = 'a100-40gb-llama-3-8b';

/** Runs `servegym simulate --json` with the profile and reads its answer. */
async function simulate(...args: string[]) {
  const { code, stdout, stderr } = await runServegym('simulate', '--profile', profile, '--json', ...args);
  assert.equal(stderr, '');
  assert.equal(code, 0);
  return JSON.parse(stdout);
}

/** Asserts that the command refuses its input: exit code 2, one message, no output, no stack. */
async function assertRefused(args: readonly string[], message: RegExp) {
  const { code, stdout, stderr } = await runServegym(...args);
  assert.equal(code, 2, stderr);
  assert.equal(stdout, '');
  assert.match(stderr, message);
  assert.doesNotMatch(stderr, /^\s+at /m);
}

describe('servegym simulate', () => {
  const folder = temporaryFolder();

  const fileWith = (name: string, text: string) => {
    const path = join(folder, name);
    writeFileSync(path, text);
    return path;
  };

  it('keeps a number of requests in flight, of drawn lengths', async () => {
    const lengths = ['--input-tokens', '1024', '--output-tokens', '256', '--length-range', '0.8'];
    const report = await simulate('--concurrency', '8', '--requests', '40', ...lengths);
    assert.equal(report.completed, 40);
    assert.ok(report.output_tokens >= 40 * 0.8 * 256 && report.output_tokens < 40 * 256);
    assert.equal((await simulate('--concurrency', '8', ...lengths)).completed, 80);
    const alone = await simulate('--concurrency', '1', '--trace', csv);
    assert.equal(alone.completed, 4);
    const sum = alone.e2e_ms.mean * 4;
    assert.ok(Math.abs(alone.simulated_s * 1000 - sum) < 1e-3, 'one after the other');
  });

  it('refuses lengths without a concurrency, and a concurrency without lengths', async () => {
    const base = ['simulate', '--profile', profile];
    await assertRefused([...base, '--concurrency', '4'], /--input-tokens and --output-tokens/);
    await assertRefused([...base, '--trace', csv, '--length-range', '0.5'], /cannot be used with/);
    await assertRefused(
      [...base, '--input-tokens', '9', '--output-tokens', '9'],
      /--closed-batch, or --concurrency/,
    );
    await assertRefused([...base, '--concurrency', '4', '--closed-batch', '4'], /cannot be used with/);
  });

  it('answers with the figures of a CSV trace', async () => {
    const report = await simulate('--trace', csv);
    for (const key of ['ttft_ms', 'tpot_ms', 'e2e_ms']) {
      const { mean, p50, p90, p99 } = report[key];
      assert.ok(mean > 0 && p50 > 0 && p90 >= p50 && p99 >= p90, `${key}: ${JSON.stringify(report[key])}`);
    }
    assert.equal(report.requests, 4);
    assert.equal(report.completed, 4);
    assert.equal(report.rejected, 0);
    assert.equal(report.preemptions, 0);
    assert.equal(report.output_tokens, 44 + 109 + 1 + 16);
    assert.ok(report.simulated_s > 4 && report.simulated_s < 5, `${report.simulated_s}`);
    assert.ok(report.wall_s > 0 && report.requests_per_wall_s > 0);
    assert.ok(Math.abs(report.throughput_tps - report.output_tokens / report.simulated_s) < 1e-9);
  });

  it('reads a JSONL trace', async () => {
    const report = await simulate('--trace', jsonl);
    assert.equal(report.completed, 3);
    assert.equal(report.output_tokens, 55);
  });

  it('prints a table for people', async () => {
    const { code, stdout } = await runServegym('simulate', '--profile', profile, '--trace', csv);
    assert.equal(code, 0);
    for (const part of [
      '4 completed, 0 rejected',
      'output tokens/s',
      'TTFT, ms',
      'TPOT, ms',
      'end to end, ms',
      'preemptions',
      'p99',
    ]) {
      assert.ok(stdout.includes(part), `${part} is not in:\n${stdout}`);
    }
  });

  it('scales the rate and repeats the trace', async () => {
    const [once, fast, many] = await Promise.all([
      simulate('--trace', csv),
      simulate('--trace', csv, '--rate-scale', '2'),
      simulate('--trace', csv, '--repeat-to', '10'),
    ]);
    assert.ok(fast.simulated_s < once.simulated_s);
    assert.equal(many.completed, 10);
    assert.ok(many.simulated_s > 2 * once.simulated_s);
  });

  it('gives the makespan of a closed batch, faster with INT8 weights', async () => {
    const batch = ['--closed-batch', '16', '--input-tokens', '128', '--output-tokens', '128'];
    const [plain, quantized] = await Promise.all([
      simulate(...batch),
      simulate(...batch, '--weights', 'INT8'),
    ]);
    assert.equal(plain.completed, 16);
    assert.equal(plain.makespan_s, plain.simulated_s);
    const speedup = plain.makespan_s / quantized.makespan_s;
    assert.ok(speedup > 1.3 && speedup < 1.55, `${speedup}`);
  });

  it('lets every knob act', async () => {
    const load = ['--closed-batch', '40', '--input-tokens', '600', '--output-tokens', '40'];
    const base = await simulate(...load);
    const knobs = [
      ['--max-num-seqs', '2'],
      ['--max-num-batched-tokens', '512'],
      ['--speculation-depth', '3'],
      ['--weights', 'INT4'],
      ['--kv-budget-fraction', '0.1'],
    ];
    const changed = await Promise.all(knobs.map((knob) => simulate(...load, ...knob)));
    for (const [i, report] of changed.entries()) {
      assert.equal(report.completed, 40);
      assert.notEqual(report.simulated_s, base.simulated_s, knobs[i].join(' '));
    }
    assert.ok(changed[2].spec_acceptance_rate > 0.2);
  });

  it('schedules as it is told', async () => {
    const load = ['--closed-batch', '12', '--input-tokens', '600', '--output-tokens', '80'];
    const server = ['--max-num-batched-tokens', '512', '--kv-blocks', '200'];
    const threshold = ['--long-prefill-token-threshold', '16'];
    const drafts = ['--speculation-depth', '3'];
    const settings = [
      [],
      ['--max-num-active-seqs', '2'],
      threshold,
      [...threshold, '--long-prefill-token-threshold-adaptive'],
      ['--watermark', '0.4'],
      ['--no-scheduler-reserve-full-isl'],
      ['--async-scheduling'],
      ...[drafts, [...drafts, '--drafter', 'ngram'], [...drafts, '--async-scheduling']],
      [...drafts, '--speculation-depth-per-batch-size', '[[1,4,3],[5,12,1]]'],
      ...['1', '2'].map((processes) => ['--api-server-count', processes]),
    ];
    const reports = await Promise.all(settings.map((setting) => simulate(...load, ...server, ...setting)));
    assert.deepEqual([...new Set(reports.map(({ completed }) => completed))], [12]);
    assert.equal(new Set(reports.map((report) => report.simulated_s)).size, settings.length);
  });

  it('takes a profile from a file', async () => {
    const file = fileWith('mine.json', JSON.stringify({ ...findProfile(profile), name: 'mine' }));
    const { code, stdout } = await runServegym('simulate', '--profile', file, '--trace', csv, '--json');
    assert.equal(code, 0);
    assert.equal(JSON.parse(stdout).profile, 'mine');
  });

  it('counts requests that can never fit as rejected', async () => {
    const huge = fileWith('huge.csv', 'arrival,input,output\n0,1000000,10\n1,10,10\n');
    const report = await simulate('--trace', huge);
    assert.equal(report.rejected, 1);
    assert.equal(report.completed, 1);
    assert.equal(report.requests_beyond_validity, 1);
  });

  const header = 'TIMESTAMP,ContextTokens,GeneratedTokens';
  const line = '2024-01-01 00:00:00.0000000,374,44';
  const badTraces: readonly [what: string, text: string, message: RegExp][] = [
    [
      'a negative length',
      `${header}\n${line}\n2024-01-01 00:00:01,-5,10\n`,
      /bad\.csv:3: expected ContextTokens .*, got "-5"/,
    ],
    ['a malformed line', `${header}\n${line}\nnonsense\n`, /bad\.csv:3: expected 3 fields/],
    ['an empty file', '', /bad\.csv: expected .*, got an empty file/],
    ['a missing column', 'TIMESTAMP,ContextTokens\n', /bad\.csv:1: expected a column for the output/],
    [
      'a length of zero',
      `${header}\n2024-01-01 00:00:00,0,10\n`,
      /bad\.csv:2: expected ContextTokens .*, got "0"/,
    ],
    [
      'a length beyond all',
      `${header}\n2024-01-01 00:00:00,10,1e12\n`,
      /bad\.csv:2: expected GeneratedTokens/,
    ],
    ['a time that is none', `arrival,input,output\nNaN,1,1\n`, /bad\.csv:2: expected /],
    [
      'a time that goes backwards',
      `${header}\n${line}\n2023-12-31 23:59:59,1,1\n`,
      /bad\.csv:3: expected an arrival at or after/,
    ],
  ];
  for (const [what, text, message] of badTraces) {
    it(`refuses ${what} with file and line`, async () => {
      await assertRefused(['simulate', '--profile', profile, '--trace', fileWith('bad.csv', text)], message);
    });
  }

  const ask = ['simulate', '--profile', profile];
  const badArguments: readonly [what: string, args: readonly string[], message: RegExp][] = [
    ['an unknown profile', ['simulate', '--profile', 'a100-llama', '--trace', csv], /the closest: a100-/],
    [
      'a trace that is not there',
      [...ask, '--trace', 'none.csv'],
      /cannot read none\.csv: there is no such file/,
    ],
    [
      'a folder for a trace',
      [...ask, '--trace', fixtures],
      /expected a folder with 0_trace\.jsonl .* or with sessions of agents/,
    ],
    ['nothing to serve', ask, /--trace/],
    ['a rate of zero', [...ask, '--trace', csv, '--rate-scale', '0'], /Expected a number above 0/],
    ['half a sequence', [...ask, '--trace', csv, '--max-num-seqs', '1.5'], /Expected a whole number/],
    [
      'more running requests than places',
      [...ask, '--trace', csv, '--max-num-active-seqs', '300'],
      /at most --max-num-seqs, which is 256, got 300/,
    ],
    [
      'a share for a threshold that is none',
      [...ask, '--trace', csv, '--long-prefill-token-threshold-adaptive'],
      /Expected --long-prefill-token-threshold above 0/,
    ],
    [
      'draft tokens for no batch of one',
      [...ask, '--trace', csv, '--speculation-depth-per-batch-size', '[[2,4,1]]'],
      /Expected ascending ranges \[first, last, depth\] from 1 on/,
    ],
    ['a drafter that is none', [...ask, '--trace', csv, '--drafter', 'medusa'], /ngram, eagle/],
    ['a watermark of all blocks', [...ask, '--trace', csv, '--watermark', '1'], /from 0 to 0\.99/],
    ['a pool larger than all', [...ask, '--trace', csv, '--kv-budget-fraction', '1.1'], /at most 1/],
    ['a precision that is none', [...ask, '--trace', csv, '--weights', 'FP3'], /FP16, FP8, INT8, INT4/],
    [
      'a precision the profile lacks',
      [...ask, '--trace', csv, '--weights', 'FP8'],
      /no coefficients for FP8/,
    ],
    ['a batch without lengths', [...ask, '--closed-batch', '4'], /--input-tokens and --output-tokens/],
    ['a batch and a trace', [...ask, '--closed-batch', '4', '--trace', csv], /cannot be used with/],
    [
      'a pool without room',
      [...ask, '--trace', csv, '--kv-budget-fraction', '0.00001'],
      /Nothing is left for the KV pool/,
    ],
    [
      'more sequences than tokens',
      [...ask, '--trace', csv, '--max-num-batched-tokens', '64'],
      /`maxNumSeqs` to be a whole number from 1 to 64, got `256`/,
    ],
    ['drafts that no profile has', [...ask, '--trace', csv, '--speculation-depth', '9'], /from 0 to 8/],
    ['a change of nothing', [...ask, '--trace', csv, '--change', '5:'], /Expected `<seconds>:<setting>=/],
    [
      'a setting that is none',
      [...ask, '--trace', csv, '--change', '5:gpu=H100'],
      /Expected one of max-num-seqs/,
    ],
    ['a tenant of no size', [...ask, '--trace', csv, '--tenant', '5:x'], /Expected `<seconds>:<GiB>`/],
    [
      'a tenant larger than the GPU',
      [...ask, '--trace', csv, '--tenant', '5:99'],
      /Expected a tenant to take 0 to 39/,
    ],
    [
      'a split without a ratio of whole numbers',
      [...ask, '--trace', csv, '--split', '2:x'],
      /prefill engines/,
    ],
    [
      'changes of a split of three GPUs',
      [...ask, '--trace', csv, '--split', '2:1', '--tenant', '1:1'],
      /expected --split 1:1 with them, got 2:1/,
    ],
    [
      'KV offloading without a prefix cache',
      [...ask, '--trace', csv, '--kv-offloading-size', '4', '--no-prefix-caching'],
      /cannot be used with/,
    ],
    [
      'a bandwidth of no KV offloading',
      [...ask, '--trace', csv, '--kv-offloading-bandwidth', '50'],
      /needs --kv-offloading-size/,
    ],
    ['a split of replicas', [...ask, '--trace', csv, '--split', '--replicas', '2'], /cannot be used with/],
    ['shares of nothing', [...ask, '--trace', csv, '--priority-shares', '0,0'], /one of them above 0/],
    [
      'an unknown kind of text',
      [...ask, '--trace', csv, '--speculation-depth', '2', '--acceptance', 'poem'],
      /poem/,
    ],
    ['an unknown command', ['simulat'], /unknown command/],
  ];
  for (const [what, args, message] of badArguments) {
    it(`refuses ${what}`, () => assertRefused(args, message));
  }

  it('refuses a profile with a missing field, by its name', async () => {
    const { requestOverheadMs: _, ...rest } = findProfile(profile);
    const file = fileWith('bad.json', JSON.stringify(rest));
    await assertRefused(
      ['simulate', '--profile', file, '--trace', csv],
      /bad\.json: expected `requestOverheadMs`/,
    );
  });

  it('serves a trace on several replicas', async () => {
    const alone = await simulate('--trace', csv, '--max-num-seqs', '1');
    const shared = await simulate(
      '--trace',
      csv,
      '--max-num-seqs',
      '1',
      '--replicas',
      '2',
      '--router',
      'least_loaded',
    );
    assert.equal(shared.completed, alone.completed);
    assert.ok(shared.ttft_ms.mean <= alone.ttft_ms.mean);
  });

  it('loads prompts from the memory of the host that the KV pool has lost', async () => {
    const prompts = fileWith(
      'prompts.jsonl',
      [1, 2, 1]
        .map((hash, i) =>
          JSON.stringify({ timestamp: 9000 * i, input_length: 512, output_length: 4, hash_ids: [hash] }),
        )
        .join('\n'),
    );
    const ask = ['--trace', prompts, '--kv-blocks', '33'];
    const [lost, loaded] = await Promise.all([
      simulate(...ask),
      simulate(...ask, '--kv-offloading-size', '4', '--kv-offloading-bandwidth', '50'),
    ]);
    assert.equal(lost.loaded_prefill_tokens, undefined);
    assert.equal(loaded.loaded_prefill_tokens, 496);
    assert.equal(loaded.prefill_tokens, lost.prefill_tokens - 496);
    assert.ok(loaded.ttft_ms.mean < lost.ttft_ms.mean);
  });

  it('writes the run for Perfetto, and a row for each request', async () => {
    const perfetto = join(folder, 'run.json');
    const rows = join(folder, 'requests.csv');
    const lines = join(folder, 'requests.jsonl');
    const report = await simulate('--trace', csv, '--chrome-trace', perfetto, '--requests-file', rows);
    await simulate('--trace', csv, '--requests-file', lines);
    assert.ok(JSON.parse(readFileSync(perfetto, 'utf8')).traceEvents.length > report.completed);
    const [header, ...requests] = readFileSync(rows, 'utf8').trim().split('\n');
    assert.equal(
      header,
      'request,arrival_ms,input_tokens,output_tokens,priority,queue_ms,ttft_ms,tpot_ms,e2e_ms',
    );
    assert.equal(requests.length, report.completed);
    const parsed = readFileSync(lines, 'utf8')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    assert.deepEqual(
      parsed.map((row) =>
        Object.values(row)
          .map((value) => value ?? '')
          .join(','),
      ),
      requests,
    );
  });

  it('writes requests as Parquet, and classes them by priority', async () => {
    const file = join(folder, 'requests.parquet');
    const report = await simulate(
      ...['--closed-batch', '60', '--input-tokens', '500', '--output-tokens', '30', '--max-num-seqs', '4'],
      ...['--policy', 'priority', '--priority-shares', '1,1', '--requests-file', file],
    );
    const rows = await parquetReadObjects({ file: await asyncBufferFromFile(file) });
    assert.equal(rows.length, 60);
    assert.deepEqual(new Set(rows.map(({ priority }) => priority)), new Set([0, 1]));
    const [urgent, other] = report.classes;
    assert.equal(urgent.completed + other.completed, 60);
    assert.ok(urgent.ttft_ms.mean < 0.7 * other.ttft_ms.mean, JSON.stringify(report.classes));
  });

  it('serves on two GPUs while settings and tenants change', async () => {
    const steady = fileWith(
      'steady.jsonl',
      Array.from({ length: 400 }, (_, i) =>
        JSON.stringify({ timestamp: 100 * i, input_length: 300, output_length: 60 }),
      ).join('\n'),
    );
    const [plain, split, wider, changing] = await Promise.all([
      simulate('--trace', steady, '--replicas', '2'),
      simulate('--trace', steady, '--rate-scale', '6', '--split'),
      simulate('--trace', steady, '--rate-scale', '6', '--split', '2:1', '--router', 'least_loaded'),
      simulate(
        ...['--trace', steady, '--change', '10:weights=INT8,max-num-seqs=32', '--tenant', '20:25'],
        ...['--tenant', '30:0'],
      ),
    ]);
    for (const report of [plain, split, wider, changing]) assert.equal(report.completed, 400);
    assert.deepEqual(plain.events, []);
    assert.ok(split.tpot_ms.mean !== plain.tpot_ms.mean);
    assert.ok(wider.ttft_ms.mean < split.ttft_ms.mean);
    assert.deepEqual(
      changing.events.map(({ kind }: { kind: string }) => kind),
      ['reload', 'reload', 'oom', 'oom'],
    );
    assert.ok(changing.ttft_ms.p99 > 1000 && plain.ttft_ms.p99 < 1000);
  });

  it('serves an hour of requests like those of the Azure conversation trace', async () => {
    const azure = join(folder, 'azure.csv');
    const drawn = await runServegym('traffic', 'draw', 'azure-conversation-2023', '--output', azure);
    assert.equal(drawn.code, 0, drawn.stderr);
    const lines = readFileSync(azure, 'utf8').trim().split('\n').slice(1);
    assert.ok(lines.length > 15_000, `${lines.length} requests`);
    const report = await simulate('--trace', azure, '--rate-scale', '0.5');
    const tokens = lines.reduce((sum, text) => sum + Number(text.split(',')[2]), 0);
    assert.equal(report.requests, lines.length);
    assert.equal(report.completed, lines.length);
    assert.equal(report.output_tokens, tokens);
    assert.ok(Math.abs(report.simulated_s - 7200) < 60, `${report.simulated_s}`);
  });
});
