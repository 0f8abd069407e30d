import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { line, writeTrace } from '../../../maintenance/test-servers/diff-traffic.ts';
import { runServegym } from '../../../maintenance/test-servers/servegym.ts';
import { temporaryFolder } from '../../../maintenance/test-servers/temporary-folder.ts';
import { writeTables } from '../../profiles/src/tables/operator-rows.fixture.ts';
import { runCommand } from './in-process.ts';

const folder = temporaryFolder();
const trace = writeTrace(folder);
const on = (baseline: string, candidate: string) => [
  ...['diff', trace, '--baseline', baseline, '--candidate', candidate, '--gpu', 'h100'],
  ...['--slo', 'ttft_p99=1s,tpot_p99=40ms'],
];

describe('servegym diff', () => {
  it('ends with 1 when a bound breaks, and lists what it does not simulate', async () => {
    const table = join(folder, 'diff.md');
    const broken = on(line(), line('--max-num-seqs 4 --frobnicate 3'));
    const { code, stdout } = await runServegym(...broken, '--markdown', table);
    assert.equal(code, 1, stdout);
    assert.match(stdout, /breaks: TTFT p99 at most 1000 ms/);
    assert.match(stdout, /candidate, not simulated: --frobnicate 3/);
    assert.match(
      readFileSync(table, 'utf8'),
      /^\*\*breaks: TTFT p99[^\n]*\*\*\n\n\| {3}\| baseline \| candidate \|/,
    );
  });

  it('reads manifests and JSON, and ends with 0 when all holds', async () => {
    const manifest = join(folder, 'deployment.yaml');
    writeFileSync(
      manifest,
      `apiVersion: apps/v1
kind: Deployment
spec:
  replicas: 2
  template:
    spec:
      containers:
        - image: vllm/vllm-openai
          args: [meta-llama/Llama-3.1-8B-Instruct, --max-num-seqs, "128"]
`,
    );
    const json = join(folder, 'candidate.json');
    const plan = { profile: 'h100-80gb-llama-3-8b', settings: { max_num_seqs: 256 }, engines: 3 };
    writeFileSync(json, JSON.stringify({ plans: [plan] }));
    const { code, stdout, stderr } = await runCommand(...on(manifest, json), '--json');
    assert.equal(code, 0, stderr);
    const { baseline, candidate, bounds, usd_per_hour: usd } = JSON.parse(stdout);
    assert.deepEqual([baseline.engines, candidate.engines], [2, 3]);
    assert.ok(bounds.every(({ bound }: { bound: string }) => bound === 'holds'));
    assert.ok(Math.abs(usd.candidate / usd.baseline - 1.5) < 1e-9);
  });

  it('compares versions of vLLM on the kernel tables of each, and refuses where nothing tells them apart', async () => {
    const tables = join(folder, 'tables');
    writeTables(tables, 'h100_sxm', [['vllm', '0.24.0']]);
    const of = (version: string) => line().replace('vllm', `vllm@${version}`);
    const both = (from: string, to: string) => runCommand(...on(of(from), of(to)), '--tables', tables);
    const { code, stdout, stderr } = await both('0.12', '0.24');
    assert.notEqual(code, 2, stderr);
    assert.match(
      stdout,
      /baseline, 0\.12: kernel tables gemm 0\.24\.0, .*V1 without asynchronous scheduling/,
    );
    assert.match(stdout, /candidate, 0\.24: kernel tables gemm 0\.24\.0, .*schedules an iteration while/);
    const refused = [
      [await both('0.22', '0.24'), /got 0\.22 and 0\.24, which rest on the same: kernel tables/],
      [await both('0.12', '0.32'), /expected a version up to 0\.24\.0, .*got 0\.32/],
      [await runCommand(...on(of('0.12'), line())), /--tables aiconfigurator_core/],
    ] as const;
    for (const [{ code: status, stderr: said }, message] of refused)
      assert.deepEqual([status, message.test(said)], [2, true], said);
  });

  it('estimates a model from the config.json in the folder of its checkpoint', async () => {
    const own = join(folder, 'own-model');
    mkdirSync(own);
    const sizes = { hidden_size: 2048, intermediate_size: 8192, num_hidden_layers: 16, vocab_size: 32000 };
    const heads = { num_attention_heads: 32, num_key_value_heads: 8, max_position_embeddings: 8192 };
    writeFileSync(join(own, 'config.json'), JSON.stringify({ model_type: 'llama', ...sizes, ...heads }));
    const { code, stdout, stderr } = await runCommand(...on(`vllm serve ${own}`, `vllm serve ${own} -tp 2`));
    assert.notEqual(code, 2, stderr);
    assert.match(stdout, /candidate: 1 × h100-80gb-own-model-tp2/);
    assert.match(stdout, /baseline: data sheets, and the shape in .*own-model\/config\.json/);
    const head = join(folder, 'head');
    mkdirSync(head);
    const drafted = (vocabulary: number) => {
      const config = {
        model_type: 'llama',
        ...sizes,
        ...heads,
        num_hidden_layers: 1,
        draft_vocab_size: vocabulary,
      };
      writeFileSync(join(head, 'config.json'), JSON.stringify(config));
      const speculation = JSON.stringify({ method: 'eagle3', model: head, num_speculative_tokens: 3 });
      return runCommand(
        ...on(`vllm serve ${own}`, `vllm serve ${own} --speculative-config '${speculation}'`),
        '--json',
      );
    };
    const [small, large] = await Promise.all([await drafted(8000), await drafted(32_000)]);
    const tpot = (run: { stdout: string }) => JSON.parse(run.stdout).bounds[1].candidate;
    assert.ok(tpot(small) < tpot(large), `${tpot(small)}, ${tpot(large)}`);
  });

  it('compares the splits and routers of plans, in whole groups', async () => {
    const file = (name: string, plan: object) => {
      const path = join(folder, name);
      writeFileSync(path, JSON.stringify({ profile: 'h100-80gb-llama-3-8b', settings: {}, ...plan }));
      return path;
    };
    const split = (engines: number) => ({ engines, settings: { split: '2:1' }, router: 'prefix_aware' });
    const before = file('three.json', { engines: 3 });
    const { code, stdout, stderr } = await runCommand(...on(before, file('split.json', split(3))), '--json');
    assert.notEqual(stdout, '', stderr);
    const { figures } = JSON.parse(stdout);
    assert.ok(code !== 2 && figures.some(({ ratio }: { ratio: number }) => Math.abs(ratio - 1) > 0.05));
    const refused: readonly (readonly [object, RegExp])[] = [
      [split(4), /engines: expected a multiple of 3, as their split is 2:1, got 4/],
      [{ settings: { split: true } }, /settings.split: expected/],
      [{ router: 'psychic' }, /router: expected one of round_robin/],
      [{ pools: [{ profile: 'a100-40gb-llama-3-8b' }] }, /diff compares no mixed fleets/],
    ];
    for (const [plan, message] of refused) {
      const { code: status, stderr: said } = await runCommand(...on(before, file('bad.json', plan)));
      assert.deepEqual([status, message.test(said)], [2, true], said);
    }
  });

  it('takes data-parallel replicas of a dense model as engines, and refuses stages that no profile has', async () => {
    const wide = await runCommand(...on(line('-tp 2'), line('-dp 2')), '--json');
    const { baseline, candidate } = JSON.parse(wide.stdout);
    assert.deepEqual([baseline.profile, baseline.engines], ['h100-80gb-llama-3-8b-tp2', 1]);
    assert.deepEqual([candidate.profile, candidate.engines], ['h100-80gb-llama-3-8b', 2]);
    const stages = await runCommand(...on(line(), line('-pp 2')));
    assert.deepEqual(
      [stages.code, /no profile of Llama-3.1-8B on 1 x 2 stages/.test(stages.stderr)],
      [2, true],
    );
  });

  it('refuses what is too long for the engine, and ends with 1 where the candidate refuses more', async () => {
    const { code, stdout } = await runCommand(...on(line(), line('--max-model-len 1000')));
    assert.equal(code, 1);
    assert.match(
      stdout,
      /^refuses (\d+) requests more\..*candidate: \1 requests are refused.* context of 1,000 tokens/ms,
    );
    const same = await runCommand(
      ...on(line('--max-model-len 1000'), line('--max-model-len 1000')),
      '--json',
    );
    const { baseline, candidate, requests } = JSON.parse(same.stdout);
    assert.deepEqual(
      [same.code, requests + baseline.refused.requests, candidate.refused],
      [0, 800, baseline.refused],
    );
    assert.ok(baseline.refused.longest > 1000 && baseline.refused.limit === 1000);
  });

  it('ends with 3 when it is too close to tell', async () => {
    const { code, stdout } = await runCommand(...on(line(), line()), '--slo', 'ttft_p99=1s,tpot_p99=12ms');
    assert.deepEqual([code, /^cannot be told: TPOT p99/m.test(stdout)], [3, true], stdout);
  });

  const refused: readonly [string, string[], RegExp][] = [
    ['a file that is not there', on('nothing.yaml', line()), /--baseline: there is no file nothing.yaml/],
    ['a model that is not known', on('vllm serve a/b', line()), /the model a\/b is not known/],
    [
      'a GPU that no profile has',
      [...on(line(), line('-tp 8')), '--gpu', 'l4'],
      /no profile of Llama-3.1-8B on 8 l4: there are .* servegym profile make --model \S+ --deployment '-tp 8' --gpu l4 /,
    ],
    [
      'a GPU whose name is a part of another',
      [...on(line(), 'vllm serve Qwen/Qwen3-32B'), '--gpu', 'l4'],
      /no profile of Qwen3-32B on 1 l4: there are .*L40S/,
    ],
  ];
  for (const [what, words, message] of refused) {
    it(`ends with 2 for ${what}`, async () => {
      const { code, stderr } = await runCommand(...words);
      assert.equal(code, 2);
      assert.match(stderr, message);
    });
  }
});
