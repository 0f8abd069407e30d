import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { findProfile } from '@servegym/profiles';
import { runServegym } from '../../../maintenance/test-servers/servegym.ts';
import { temporaryFolder } from '../../../maintenance/test-servers/temporary-folder.ts';
import { runCommand } from './in-process.ts';

const fixtures = join(import.meta.dirname, 'fixtures');
const csv = join(fixtures, 'trace.csv');
const jsonl = join(fixtures, 'trace.jsonl');
const profile = 'a100-40gb-llama-3-8b';

/** Runs `servegym simulate --json` with the profile and reads its answer. */
async function simulate(...args: string[]) {
  const { code, stdout, stderr } = await runCommand('simulate', '--profile', profile, '--json', ...args);
  assert.equal(stderr, '');
  assert.equal(code, 0);
  return JSON.parse(stdout);
}

/** Asserts that the command refuses its input: exit code 2, one message, no output, no stack. */
async function assertRefused(args: readonly string[], message: RegExp) {
  const { code, stdout, stderr } = await runCommand(...args);
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
    const report = await simulate('closed:8x1024:256~0.8', '--requests', '40');
    assert.equal(report.completed, 40);
    assert.ok(report.output_tokens >= 40 * 0.8 * 256 && report.output_tokens < 40 * 256);
    assert.equal((await simulate('closed:8x1024:256~0.8')).completed, 80);
    const alone = await simulate(`closed:1x${csv}`);
    assert.equal(alone.completed, 4);
    const sum = alone.e2e_ms.mean * 4;
    assert.ok(Math.abs(alone.simulated_s * 1000 - sum) < 1e-3, 'one after the other');
  });

  it('serves drawn traffic: arrivals by chance, a model of a trace, a task', async () => {
    const [poisson, model, task] = await Promise.all([
      simulate('1024:64~0.5@4/s,60s'),
      simulate('chat@2/s,1m'),
      simulate('static_workload', '--requests', '300'),
    ]);
    assert.ok(poisson.completed > 180 && poisson.completed < 300, `${poisson.completed}`);
    assert.ok(
      poisson.output_tokens >= 32 * poisson.completed && poisson.output_tokens < 64 * poisson.completed,
    );
    assert.equal(model.trace, 'chat (azure-conversation-2023)');
    assert.ok(model.completed > 60 && model.completed < 240, `${model.completed}`);
    assert.deepEqual([task.trace, task.completed], ['static_workload', 300]);
  });

  it('refuses lengths without a rate, a rate that is none, and more than a day', async () => {
    const base = ['simulate', '--profile', profile];
    await assertRefused([...base, '1024:64'], /Expected a rate, such as 1024:64@12\/s/);
    await assertRefused([...base, 'chat@0/s'], /Expected a number above 0/);
    await assertRefused([...base, 'chat@2/s,25h'], /at most 24 h/);
    await assertRefused([...base, 'closed:4x9:'], /Expected lengths such as 2048:256/);
    await assertRefused([...base, 'rag'], /expected a rate, such as rag@3\/s/);
    await assertRefused([...base, 'gossip'], /Expected a file, or drawn traffic/);
    await assertRefused([...base, 'chat@x/s'], /Expected a file, or drawn traffic: chat@12\/s/);
    await assertRefused([...base, '2048:256@12/h'], /Expected a file, or drawn traffic/);
  });

  it('serves a line as its GPU would, and lists what it does not simulate', async () => {
    const line = 'vllm serve meta-llama/Llama-3.1-8B-Instruct --max-num-seqs 2 --frobnicate 3';
    const { code, stdout, stderr } = await runCommand(
      ...['simulate', 'batch:8x100:20', '--json', '--deployment', line, '--gpu', 'h100'],
    );
    assert.equal(code, 0, stderr);
    assert.equal(JSON.parse(stdout).profile, 'h100-80gb-llama-3-8b');
    assert.match(stderr, /^not simulated: --frobnicate 3$/m);
  });

  it('counts the KV of layers with a sliding window as vLLM does, and refuses to offload it', async () => {
    const base = ['simulate', 'closed:64x1024:1024', '--json', '--gpu', 'l40s', '--deployment'];
    const [free, enough, short] = await Promise.all(
      ['', ' --num-gpu-blocks-override 8800', ' --num-gpu-blocks-override 8000'].map(async (flags) => {
        const { code, stdout, stderr } = await runCommand(...base, `vllm serve openai/gpt-oss-20b${flags}`);
        assert.equal(code, 0, stderr);
        assert.doesNotMatch(stderr, /not simulated/);
        return JSON.parse(stdout).ttft_ms.mean;
      }),
    );
    // 64 sequences of up to 2,048 tokens hold 128 blocks each where attention is full, and 9 where a window is 128 tokens.
    assert.equal(enough, free);
    assert.ok(short > 1.5 * free, `${short} and ${free} ms`);
    await assertRefused(
      [...base, 'vllm serve openai/gpt-oss-20b --kv-offloading-size 8'],
      /not simulated for gpt-oss-20b, whose layers attend within windows: leave it out/,
    );
  });

  it('refuses a token budget below the longest request without chunked prefill, as vLLM does', async () => {
    const line = 'vllm serve Qwen/Qwen3-8B --no-enable-chunked-prefill';
    const base = ['simulate', 'batch:6x3000:2', '--json', '--gpu', 'h100', '--deployment'];
    await assertRefused([...base, `${line} --max-num-batched-tokens 2048`], /of at least 40960, the context/);
    await assertRefused(
      [...base, `${line} --max-num-batched-tokens 2048 --max-model-len 4096`],
      /of at least 4096, the --max-model-len/,
    );
    const answers = await Promise.all(
      ['--max-num-batched-tokens 4096 --max-model-len 4096', '--max-model-len 16384'].map(
        async (flags) => JSON.parse((await runCommand(...base, `${line} ${flags}`)).stdout).ttft_ms,
      ),
    );
    // With the budget of one prompt, the first of those that wait are served earlier.
    assert.ok(answers[0].mean < answers[1].mean, JSON.stringify(answers));
  });

  it('answers with the figures of a CSV trace', async () => {
    const report = await simulate(csv);
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
    const report = await simulate(jsonl);
    assert.equal(report.completed, 3);
    assert.equal(report.output_tokens, 55);
  });

  it('prints a table for people', async () => {
    const { code, stdout } = await runCommand('simulate', csv, '--profile', profile);
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

  it('scales the rate', async () => {
    const [once, fast] = await Promise.all([simulate(csv), simulate(csv, '--rate-scale', '2')]);
    assert.ok(fast.simulated_s < once.simulated_s);
  });

  it('gives the makespan of a closed batch, faster with INT8 weights', async () => {
    const batch = ['batch:16x128:128'];
    const [plain, quantized] = await Promise.all([
      simulate(...batch),
      simulate(...batch, '--deployment', '--quantization w8a8_int8'),
    ]);
    assert.equal(plain.completed, 16);
    assert.equal(plain.makespan_s, plain.simulated_s);
    const speedup = plain.makespan_s / quantized.makespan_s;
    assert.ok(speedup > 1.3 && speedup < 1.55, `${speedup}`);
  });

  it('lets every knob act', async () => {
    const load = ['batch:40x600:40'];
    const base = await simulate(...load);
    const knobs = [
      '--max-num-seqs 2',
      '--max-num-batched-tokens 512',
      `--speculative-config '{"num_speculative_tokens":3}'`,
      '--quantization awq',
      '--gpu-memory-utilization 0.45',
      '--num-gpu-blocks-override 300',
    ];
    const changed = await Promise.all(knobs.map((knob) => simulate(...load, '--deployment', knob)));
    for (const [i, report] of changed.entries()) {
      assert.equal(report.completed, 40);
      assert.notEqual(report.simulated_s, base.simulated_s, knobs[i]);
    }
    assert.ok(changed[2].spec_acceptance_rate > 0.2);
  });

  it('schedules as it is told', async () => {
    const server = '--max-num-batched-tokens 512 --num-gpu-blocks-override 200';
    const threshold = '--long-prefill-token-threshold 16';
    const drafts = (more: object = {}) =>
      `--speculative-config '${JSON.stringify({ num_speculative_tokens: 3, ...more })}'`;
    const settings = [
      '',
      '--max-num-active-seqs 2',
      threshold,
      `${threshold} --long-prefill-token-threshold-adaptive`,
      '--watermark 0.4',
      '--no-scheduler-reserve-full-isl',
      '--async-scheduling',
      ...[drafts(), drafts({ method: 'ngram' }), `${drafts()} --async-scheduling`],
      drafts({
        num_speculative_tokens_per_batch_size: [
          [1, 4, 3],
          [5, 12, 1],
        ],
      }),
      ...['1', '2'].map((processes) => `--api-server-count ${processes}`),
    ];
    const reports = await Promise.all(
      settings.map((setting) => simulate('batch:12x600:80', '--deployment', `${server} ${setting}`)),
    );
    assert.deepEqual([...new Set(reports.map(({ completed }) => completed))], [12]);
    assert.equal(new Set(reports.map((report) => report.simulated_s)).size, settings.length);
  });

  it('takes a profile from a file', async () => {
    const file = fileWith('mine.json', JSON.stringify({ ...findProfile(profile), name: 'mine' }));
    const { code, stdout } = await runServegym('simulate', csv, '--profile', file, '--json');
    assert.equal(code, 0);
    assert.equal(JSON.parse(stdout).profile, 'mine');
  });

  it('counts requests that can never fit as rejected', async () => {
    const huge = fileWith('huge.csv', 'arrival,input,output\n0,1000000,10\n1,10,10\n');
    const report = await simulate(huge, '--deployment=--max-model-len 2000000');
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
      await assertRefused(['simulate', fileWith('bad.csv', text), '--profile', profile], message);
    });
  }

  const ask = ['simulate', '--profile', profile];
  const on = (flags: string) => [...ask, csv, '--deployment', flags];
  const badArguments: readonly [what: string, args: readonly string[], message: RegExp][] = [
    ['an unknown profile', ['simulate', csv, '--profile', 'a100-llama'], /the closest: a100-/],
    ['a trace that is not there', [...ask, 'none.csv'], /cannot read none\.csv: there is no such file/],
    [
      'a folder for a trace',
      [...ask, fixtures],
      /expected a folder with 0_trace\.jsonl .* or with sessions of agents/,
    ],
    ['nothing to serve', ask, /missing required argument 'traffic'/],
    ['nothing that serves', ['simulate', csv], /--deployment: expected a `vllm serve` or SGLang line/],
    ['a rate of zero', [...ask, csv, '--rate-scale', '0'], /Expected a number above 0/],
    ['half a sequence', on('--max-num-seqs 1.5'), /to be a whole number/],
    [
      'more running requests than places',
      on('--max-num-active-seqs 300'),
      /at most --max-num-seqs, which is 256, got 300/,
    ],
    [
      'a share for a threshold that is none',
      on('--long-prefill-token-threshold-adaptive'),
      /expected --long-prefill-token-threshold above 0/,
    ],
    [
      'draft tokens for no batch of one',
      on(
        `--speculative-config '{"num_speculative_tokens":4,"num_speculative_tokens_per_batch_size":[[2,4,1]]}'`,
      ),
      /num_speculative_tokens_per_batch_size such as \[\[1,16,3\]/,
    ],
    ['a watermark of all blocks', on('--watermark 1'), /from 0 to 0\.99/],
    ['a pool larger than all', on('--gpu-memory-utilization 1.1'), /to be a number from 0\.05 to 1/],
    ['a precision the profile lacks', on('--quantization fp8'), /has no FP8 weights; it has FP16/],
    ['a batch without lengths', [...ask, 'batch:4x'], /Expected a file, or drawn traffic/],
    ['a pool without room', on('--gpu-memory-utilization 0.1'), /Nothing is left for the KV pool/],
    [
      'more sequences than tokens',
      on('--max-num-batched-tokens 64'),
      /`maxNumSeqs` to be a whole number from 1 to 64, got `256`/,
    ],
    ['drafts that are no JSON', on('--speculative-config 9x'), /to be JSON/],
    ['a split without a ratio of whole numbers', [...ask, csv, '--split', '2:x'], /prefill engines/],
    [
      'KV offloading without a prefix cache',
      on('--kv-offloading-size 4 --no-enable-prefix-caching'),
      /--kv-offloading-size needs prefix caching/,
    ],
    [
      'a bandwidth of no KV offloading',
      [...ask, csv, '--kv-offloading-bandwidth', '50'],
      /needs --kv-offloading-size/,
    ],
    ['a split of replicas', [...ask, csv, '--replicas', '2', '--split'], /cannot be used with/],
    ['shares of nothing', [...ask, csv, '--priority-shares', '0,0'], /one of them above 0/],
    [
      'an unknown kind of text',
      [...on(`--speculative-config '{"num_speculative_tokens":2}'`), '--acceptance', 'poem'],
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
    await assertRefused(['simulate', csv, '--profile', file], /bad\.json: expected `requestOverheadMs`/);
  });

  it('serves a trace on several replicas', async () => {
    const one = [csv, '--deployment', '--max-num-seqs 1'];
    const alone = await simulate(...one);
    const shared = await simulate(...one, '--replicas', '2', '--router', 'least_loaded');
    assert.equal(shared.completed, alone.completed);
    assert.ok(shared.ttft_ms.mean <= alone.ttft_ms.mean);
  });

  it('lets a module of the user route, admit and order, and counts what it answers wrongly', async () => {
    const file = fileWith(
      'mine.ts',
      `import { definePolicy } from 'servegym';
let routed: number = 0;
export default definePolicy({
  admit: ({ prompt_tokens }: { prompt_tokens: number }) => prompt_tokens < 1100,
  score: (request, replica) => (routed++ < 2 ? Number.NaN : -replica.requests_in_flight),
  order: (queue) => queue.sort((a, b) => a.prompt_tokens - b.prompt_tokens),
});
`,
    );
    const load = ['closed:6x1000:50~0.7', '--requests', '40', '--replicas', '2'];
    const { completed, policy } = await simulate(...load, '--policy', file, '--metrics-interval', '50');
    assert.equal(completed, 40);
    assert.deepEqual(policy, {
      refused: 0,
      faults: [
        { function: 'score', count: 2, message: 'Expected `score` to answer a number, got `NaN` (number)' },
      ],
    });
    const { stdout } = await runCommand('simulate', ...load, '--profile', profile, '--policy', file);
    assert.match(
      stdout,
      /by the policy +0 refused\n.*note: Expected `score`.*; the default decided, 2 times/s,
    );
    const wrong: [string, string, RegExp][] = [
      ['three.js', 'export default 3', /three\.js: expected an object with any of order, admit, .*, got 3/],
      ['open.js', 'export default (', /open\.js: Unexpected end of input/],
      ['none.js', 'const x = 1', /none\.js: expected `export default definePolicy/],
      ['typed.ts', 'export default { score: 3 as number }', /typed\.ts: expected `score` to be a function/],
    ];
    for (const [name, text, message] of wrong) {
      const args = ['simulate', csv, '--profile', profile, '--policy', fileWith(name, text)];
      await assertRefused(args, message);
    }
    await assertRefused(
      ['evaluate', file, '--env', 'fleet'],
      /mine\.ts: expected a file that training wrote, got a module/,
    );
  });

  it('gives a policy in Python the results that it has in TypeScript', async () => {
    const typescript = fileWith(
      'twin.ts',
      `export default {
  admit: (request, fleet) => fleet.random() < 0.9,
  score: (request, replica) => replica.index === 1 && replica.requests_in_flight > 2 ? Number.NaN : -replica.requests_in_flight,
  order: (queue) => queue.sort((a, b) => b.prompt_tokens - a.prompt_tokens),
};`,
    );
    const python = fileWith(
      'twin.py',
      `
def admit(request, fleet):
    return fleet.random() < 0.9


def score(request, replica):
    return float("nan") if replica.index == 1 and replica.requests_in_flight > 2 else -replica.requests_in_flight


def order(queue):
    return sorted(queue, key=lambda request: -request.prompt_tokens)
`,
    );
    const load = [
      'closed:12x1000:50~0.7',
      '--requests',
      '80',
      '--replicas',
      '2',
      '--deployment',
      '--max-num-seqs 4',
    ];
    const results = [];
    for (const file of [typescript, python]) results.push(await simulate(...load, '--policy', file));
    const [one, other] = results.map(({ wall_s: _, requests_per_wall_s: __, ...result }) => result);
    assert.deepEqual(other, one);
    assert.ok(one.policy.refused > 0 && one.policy.faults[0].count > 0, JSON.stringify(one.policy));
    await assertRefused(
      [
        'simulate',
        csv,
        '--profile',
        profile,
        '--policy',
        fileWith('open.py', 'def score(request:\n    pass'),
      ],
      /open\.py: SyntaxError: .* \(line 1\)/,
    );
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
    const pool = '--num-gpu-blocks-override 33';
    const [lost, loaded] = await Promise.all([
      simulate(prompts, '--deployment', pool),
      simulate(
        ...[prompts, '--deployment', `${pool} --kv-offloading-size 4`, '--kv-offloading-bandwidth', '50'],
      ),
    ]);
    assert.equal(lost.loaded_prefill_tokens, undefined);
    assert.equal(loaded.loaded_prefill_tokens, 496);
    assert.equal(loaded.prefill_tokens, lost.prefill_tokens - 496);
    assert.ok(loaded.ttft_ms.mean < lost.ttft_ms.mean);
  });

  it('writes a row for each request', async () => {
    const rows = join(folder, 'requests.csv');
    const lines = join(folder, 'requests.jsonl');
    const report = await simulate(csv, '--requests-file', rows);
    await simulate(csv, '--requests-file', lines);
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

  it('classes requests by priority, in the file too', async () => {
    const file = join(folder, 'requests.jsonl');
    const report = await simulate(
      ...['batch:60x500:30', '--deployment', '--max-num-seqs 4 --scheduling-policy priority'],
      ...['--priority-shares', '1,1', '--requests-file', file],
    );
    const lines = readFileSync(file, 'utf8').trim().split('\n');
    const rows = lines.map((line) => JSON.parse(line));
    assert.equal(rows.length, 60);
    assert.deepEqual(new Set(rows.map(({ priority }) => priority)), new Set([0, 1]));
    const [urgent, other] = report.classes;
    assert.equal(urgent.completed + other.completed, 60);
    assert.ok(urgent.ttft_ms.mean < 0.7 * other.ttft_ms.mean, JSON.stringify(report.classes));
  });

  it('counts the requests that clients give up, which leave room for others', async () => {
    const [impatient, patient] = await Promise.all([
      simulate('2048:256@30/s,1m', '--client-timeout', '10'),
      simulate('2048:256@30/s,1m'),
    ]);
    assert.ok(impatient.aborted > 100, `${impatient.aborted}`);
    assert.equal(impatient.completed + impatient.aborted, patient.completed);
    assert.equal(patient.aborted, undefined);
    assert.ok(impatient.ttft_ms.p99 <= 10_000 && patient.ttft_ms.p99 > 20_000);
  });

  it('serves prefills and decodes apart', async () => {
    const steady = fileWith(
      'steady.jsonl',
      Array.from({ length: 400 }, (_, i) =>
        JSON.stringify({ timestamp: 100 * i, input_length: 300, output_length: 60 }),
      ).join('\n'),
    );
    const [plain, split, wider] = await Promise.all([
      simulate(steady, '--replicas', '2'),
      simulate(steady, '--rate-scale', '6', '--split'),
      simulate(steady, '--rate-scale', '6', '--split', '2:1', '--router', 'least_loaded'),
    ]);
    for (const report of [plain, split, wider]) assert.equal(report.completed, 400);
    assert.ok(split.tpot_ms.mean !== plain.tpot_ms.mean);
    assert.ok(wider.ttft_ms.mean < split.ttft_ms.mean);
  });

  it('serves an hour of requests like those of the Azure conversation trace', async () => {
    const azure = join(folder, 'azure.csv');
    const drawn = await runCommand('traffic', 'draw', 'azure-conversation-2023', azure);
    assert.equal(drawn.code, 0, drawn.stderr);
    const lines = readFileSync(azure, 'utf8').trim().split('\n').slice(1);
    assert.ok(lines.length > 15_000, `${lines.length} requests`);
    const report = await simulate(azure, '--rate-scale', '0.5');
    const answers = lines
      .map((text) => text.split(',').slice(1).map(Number))
      .filter(([input, output]) => input! + output! <= 8192);
    assert.equal(report.requests + report.refused.requests, lines.length);
    assert.equal(report.completed, answers.length);
    assert.equal(
      report.output_tokens,
      answers.reduce((sum, [, output]) => sum + output!, 0),
    );
    assert.ok(Math.abs(report.simulated_s - 7200) < 60, `${report.simulated_s}`);
  });
});
