import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, describe, it } from 'node:test';
import { RandomStream } from '@servegym/simulator';
import { runServegym } from '../../../maintenance/test-servers/servegym.ts';
import { temporaryFolder } from '../../../maintenance/test-servers/temporary-folder.ts';
import { runCommand } from './in-process.ts';

const folder = temporaryFolder();
const trace = join(folder, 'trace.csv');

/** Requests of a Poisson process at a rate that doubles half-way. */
function risingTrace(): string {
  const random = new RandomStream(7, 'trace');
  let at = 0;
  const lines = Array.from({ length: 1200 }, (_, i) => {
    at += random.exponential(i < 400 ? 0.25 : 0.125);
    return `${at.toFixed(4)},${random.integer(50, 2000)},${random.integer(20, 300)}`;
  });
  return `arrival,input,output\n${lines.join('\n')}\n`;
}

const asked = [
  'plan',
  trace,
  '--model',
  'llama-3-8b',
  '--gpus',
  'a100-40gb,l40s',
  '--slo',
  'ttft_p99=1s,tpot_p99=40ms',
  '--requests',
  '400',
  '--allow',
  'drafts,estimated,fp8,int8',
];
const own = { 'A100-40GB': 3, 'L40S-48GB': 1 };

interface Plan {
  readonly profile: string;
  readonly settings: Record<string, unknown>;
  readonly pools: readonly { readonly role: string; readonly profile: string; readonly engines: number }[];
  readonly engines: number;
  readonly gpus: number;
  readonly usd_per_hour: number;
  readonly kwh_per_hour_at_most: number;
  readonly autoscaled_usd_per_hour: number;
  readonly lower_bound_usd_per_hour: number;
  readonly headroom: number;
  readonly ttft_p99_ms: number;
  readonly on_front: boolean;
  readonly rests_on: string;
  readonly assumes: readonly string[];
  readonly confidence: { level: string; profile_error: number; usd_per_hour: { low: number; high: number } };
  readonly commands: readonly { line: string }[];
}

describe('servegym plan', () => {
  before(() => {
    writeFileSync(trace, risingTrace());
    writeFileSync(join(folder, 'prices.json'), JSON.stringify(own));
  });

  it('ranks GPUs by price, with a bound, intervals and lines to start them, the same on one thread', async () => {
    const page = join(folder, 'plan.html');
    const priced = [...asked, '--prices', join(folder, 'prices.json'), '--json'];
    const { code, stdout, stderr } = await runServegym(...priced, '--threads', '2', '--report', page);
    assert.equal(code, 0, stderr);
    const { wall_s: _, ...found } = JSON.parse(stdout);
    const plans: Plan[] = found.plans;
    assert.ok(plans.length >= 4, stdout);
    for (const plan of plans) {
      const usd = plan.pools.reduce((sum, { profile, engines }) => {
        const gpus = Number(/-tp(\d)/.exec(profile)?.[1] ?? 1);
        return sum + engines * gpus * (profile.startsWith('a100') ? 3 : 1);
      }, 0);
      assert.equal(plan.usd_per_hour, usd);
      const kw = plan.pools.map(({ profile, engines }) => {
        const gpus = Number(/-tp(\d)/.exec(profile)?.[1] ?? 1);
        return engines * gpus * (profile.startsWith('a100') ? 0.4 : 0.35);
      });
      assert.ok(Math.abs(plan.kwh_per_hour_at_most - kw.reduce((sum, each) => sum + each)) < 1e-9);
      assert.ok(
        plan.lower_bound_usd_per_hour > 0 && plan.lower_bound_usd_per_hour < plan.autoscaled_usd_per_hour,
      );
      assert.ok(plan.autoscaled_usd_per_hour <= plan.usd_per_hour + 1e-9);
      const { low, high } = plan.confidence.usd_per_hour;
      assert.ok(low <= plan.usd_per_hour && plan.usd_per_hour <= high && plan.headroom > 0.5);
      assert.match(plan.commands[0].line, /^vllm serve \S+.*--max-num-seqs \d+/);
      assert.equal(plan.rests_on === 'measured', plan.confidence.level === 'high');
    }
    const prices = plans.map((plan) => plan.usd_per_hour);
    assert.deepEqual(
      prices,
      prices.toSorted((a, b) => a - b),
    );
    const front = plans.filter((plan) => plan.on_front).map((plan) => plan.ttft_p99_ms);
    assert.deepEqual(
      front,
      front.toSorted((a, b) => b - a),
    );
    const html = readFileSync(page, 'utf8');
    assert.match(
      html,
      /"title":"What to buy.*Table of plans.*Assumptions.*kind: Deployment.*vllm\/vllm-openai/s,
    );
    const lead = plans.find(({ rests_on }) => rests_on === 'measured') ?? plans[0];
    assert.ok(html.includes(`replicas: ${lead.engines}\\n`));

    const { wall_s: __, ...single } = JSON.parse((await runCommand(...priced, '--threads', '1')).stdout);
    assert.deepEqual(single, found);
  });

  it('prints the line to start first, takes drawn traffic, and says what no GPU can do', async () => {
    const drawn = ['plan', 'chat@3/s,0.2h', '--model', 'llama-3-8b'];
    const few = [...drawn, '--gpus', 'a100-40gb', '--requests', '400'];
    const { code, stdout, stderr } = await runCommand(...few);
    assert.equal(code, 0, stderr);
    assert.match(stdout, /Cheapest: \d+ engines? of a100-40gb-llama-3-8b/);
    assert.ok(stdout.indexOf('vllm serve') < stdout.indexOf('USD/h'));
    const impossible = await runCommand(...few, '--slo', 'ttft_p99=1ms');
    assert.match(
      impossible.stdout,
      /No profile meets the SLO:\n {2}no settings meet the SLO: a100-40gb-llama-3-8b[^\n]*\nNearest: 1 x a100-40gb-llama-3-8b.*: [\d.]+ ms for TTFT p99 at most 1 ms/,
    );
    assert.equal(impossible.code, 1);
  });

  it('draws documents that prompts share, at the rate that is asked for', async () => {
    const few = [
      ...['--model', 'llama-3-8b', '--gpus', 'h100', '--requests', '400'],
      ...['--slo', 'ttft_p99=2s', '--json'],
    ];
    const { code, stdout, stderr } = await runCommand('plan', 'rag@90/s,0.02h', ...few);
    assert.equal(code, 0, stderr);
    const found = JSON.parse(stdout);
    assert.equal(found.trace, 'rag (ragpulse)');
    assert.ok(
      found.plans.some(({ router }: { router: string }) => router === 'prefix_aware'),
      stdout,
    );
    const without = await runCommand('plan', 'rag,0.02h', ...few);
    assert.equal(without.code, 2);
    assert.match(
      without.stderr,
      /rag: expected a rate, such as rag@3\/s, as its trace has 0.01 requests a second/,
    );
    const many = await runCommand('plan', 'rag@900/s,0.1h', ...few);
    assert.match(many.stderr, /share too many prefixes to hold/);
  });

  it('refuses prompts beyond the context of the model, and counts them', async () => {
    const long = join(folder, 'long.csv');
    const rows = Array.from({ length: 450 }, (_, i) => `${i / 4},${i % 9 === 0 ? 40_000 : 500},50`);
    writeFileSync(long, `arrival,input,output\n${rows.join('\n')}\n`);
    const few = ['plan', long, '--model', 'llama-3-8b', '--gpus', 'a100-40gb', '--requests', '400', '--json'];
    const { code, stdout, stderr } = await runCommand(...few);
    assert.equal(code, 0, stderr);
    assert.match(stderr, /50 requests are refused.* context of 8,192 tokens.*the longest: 40,050/);
    const { requests, refused } = JSON.parse(stdout);
    assert.deepEqual([requests, refused], [400, { requests: 50, longest: 40_050, limit: 8192 }]);
    const tuned = await runCommand(
      'tune',
      long,
      '--profile',
      'a100-40gb-llama-3-8b',
      '--configurations',
      '16',
      '--requests',
      '400',
      '--json',
    );
    assert.deepEqual(JSON.parse(tuned.stdout).refused, refused);
    for (const more of [[], ['--priority-shares', '0.5,0.5']]) {
      const simulated = await runCommand(
        'simulate',
        long,
        '--profile',
        'a100-40gb-llama-3-8b',
        ...more,
        '--json',
      );
      const found = JSON.parse(simulated.stdout);
      assert.deepEqual([found.completed, found.refused], [400, refused]);
    }
    const text = await runCommand('simulate', long, '--profile', 'a100-40gb-llama-3-8b');
    assert.match(text.stdout, /note: 50 requests are refused/);
    writeFileSync(long, `arrival,input,output\n0,9000,9\n1,9000,9\n`);
    const none = await runCommand(...few);
    assert.deepEqual(
      [none.code, /no request is left.*TRACE_TOO_LONG/.test(none.stderr)],
      [2, true],
      none.stderr,
    );
  });

  it('estimates a model from its config.json where that is allowed, and refuses what exceeds its context', async () => {
    const config = join(folder, 'config.json');
    const sizes = { hidden_size: 2048, intermediate_size: 8192, num_hidden_layers: 16, vocab_size: 32000 };
    const heads = { num_attention_heads: 32, num_key_value_heads: 8, max_position_embeddings: 2100 };
    writeFileSync(config, JSON.stringify({ model_type: 'llama', ...sizes, ...heads }));
    const line = ['plan', trace, '--model', config, '--gpus', 'l4', '--requests', '400', '--json'];
    const unallowed = await runCommand(...line);
    assert.deepEqual(
      [unallowed.code, /--allow estimated/.test(unallowed.stderr)],
      [2, true],
      unallowed.stderr,
    );
    const { code, stdout, stderr } = await runCommand(
      ...line,
      '--allow',
      'estimated',
      '--slo',
      'ttft_p99=9s',
    );
    assert.equal(code, 0, stderr);
    assert.equal(JSON.parse(stdout).plans[0].rests_on, 'estimated');
    assert.match(stderr, /requests are refused.* context of 2,100 tokens/);
  });

  it('takes lengths and a rate instead of a trace, and the id of a checkpoint', async () => {
    const { code, stdout, stderr } = await runCommand(
      ...[
        'plan',
        '512:64~0.5@4/s,0.1h',
        '--model',
        'meta-llama/Llama-3.1-8B-Instruct',
        '--gpus',
        'a100-40gb',
      ],
      ...['--requests', '400', '--json'],
    );
    assert.equal(code, 0, stderr);
    const found = JSON.parse(stdout);
    assert.equal(found.trace, '4 requests/s of 512 tokens in, 64 out');
    assert.ok(Math.abs(found.requests_per_s / 4 - 1) < 0.1 && found.plans.length > 0, stdout);
  });

  it('names what is cheaper on assumptions, and what to measure first', async () => {
    const drawn = ['plan', '2048:256@8/s,0.1h', '--model', 'llama-3-8b', '--requests', '400'];
    const { code, stdout } = await runCommand(...drawn, '--gpus', 'a100-40gb,rtx4090');
    assert.equal(code, 0);
    assert.match(stdout, /^Cheapest: .*, FP16 /m);
    assert.match(stdout, /\nCheaper, on assumptions:\n.*rests on +assumes\n1.*estimated/);
    assert.match(stdout, /Before you buy the first of them: .*`--allow [a-z0-9,]+` ranks such plans/);
  });

  it('plans within a space of its own, and says what is not in it', async () => {
    const file = join(folder, 'space.json');
    const drawn = [
      'plan',
      '2048:256@12/s,0.1h',
      '--model',
      'llama-3-8b',
      '--requests',
      '400',
      '--search',
      file,
    ];
    const own = { gpu: ['H100-80GB'], tensor_parallel_size: [1], quantization: ['FP16'], max_num_seqs: [96] };
    writeFileSync(file, JSON.stringify(own));
    const { code, stdout, stderr } = await runCommand(...drawn);
    assert.equal(code, 0, stderr);
    assert.match(stdout, /Settings: max_num_seqs 96/);
    assert.match(stdout, /Searched: gpu "H100-80GB", .*max_num_seqs 96/);
    assert.match(stdout, /Not searched: .*split.*\(not named\).*autoscaler \(engines always run/);
    assert.match(stdout, /Not searched: .*kinds_of_gpu \(one in a fleet\).*\nRank correlation: /);
    writeFileSync(file, JSON.stringify({ ...own, autoscaler: [{ requests_in_flight: 1 }] }));
    const scaled = (await runCommand(...drawn)).stdout;
    assert.match(
      scaled,
      /USD an hour with the autoscaler below, .* USD an hour .* with all engines all the time/,
    );
    assert.match(scaled, /With Kubernetes’ autoscaler at 1 request in flight on each: 2 engines on average/);
    writeFileSync(file, JSON.stringify({ ...own, tensor_parallel_size: [3] }));
    const none = await runCommand(...drawn);
    assert.deepEqual([none.code, none.stdout], [2, '']);
    assert.match(none.stderr, /no profile is in the space; the profiles have gpu .*EMPTY_SEARCH_SPACE/);
    writeFileSync(file, JSON.stringify({ replicas: [2] }));
    assert.match(
      (await runCommand(...drawn)).stderr,
      /expected some of gpu, .*got replicas.*INVALID_SEARCH_SPACE/,
    );
  });

  const refusals: readonly [string, string[], RegExp][] = [
    [
      'an unknown assumption',
      [...asked.slice(0, 4), '--allow', 'luck'],
      /Expected some of drafts, estimated, fp16/,
    ],
    [
      'an unknown model',
      ['plan', trace, '--model', 'nope'],
      /--model: expected the config\.json of a model, or one of .*Llama-3-8B/,
    ],
    [
      'GPUs that no profile has',
      [...asked.slice(0, 4), '--gpus', 'tpu'],
      /no profile of .* is on tpu: there are .*A100/,
    ],
    ['nothing to plan for', ['plan', '--model', 'llama-3-8b'], /missing required argument 'traffic'/],
    ['lengths without a rate', ['plan', '9:9', ...asked.slice(2)], /Expected a rate, such as 9:9@12\/s/],
    [
      'traffic without arrivals',
      ['plan', 'closed:8x9:9', ...asked.slice(2)],
      /expected traffic with arrivals/,
    ],
    ['classes', [...asked.slice(0, 4), '--slo', 'class0_ttft_p99=1s'], /expected bounds of all requests/],
  ];
  for (const [what, line, message] of refusals) {
    it(`refuses ${what}`, async () => {
      const { code, stderr } = await runCommand(...line);
      assert.notEqual(code, 0);
      assert.match(stderr, message);
    });
  }
});
