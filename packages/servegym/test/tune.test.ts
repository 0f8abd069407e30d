import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, describe, it } from 'node:test';
import { RandomStream } from '@servegym/simulator';
import { runServegym } from '../../../maintenance/test-servers/servegym.ts';
import { temporaryFolder } from '../../../maintenance/test-servers/temporary-folder.ts';
import { runCommand } from './in-process.ts';

const folder = temporaryFolder();

/** A Poisson process of 4 requests/s, long enough for percentiles. */
function poissonTrace(): string {
  const random = new RandomStream(3, 'trace');
  let at = 0;
  const lines = Array.from({ length: 1600 }, () => {
    at += random.exponential(0.25);
    return `${at.toFixed(4)},${random.integer(50, 1500)},${random.integer(20, 300)}`;
  });
  return `arrival,input,output\n${lines.join('\n')}\n`;
}

const trace = join(folder, 'poisson.csv');
/** Mean of the output lengths above. */
const MEAN_OUTPUT = 160;
const small = [trace, '--configurations', '48', '--threads', '2'];

describe('servegym tune', () => {
  before(() => writeFileSync(trace, poissonTrace()));

  it('finds better settings than the defaults, writes a report, and gives the same on one thread', async () => {
    const page = join(folder, 'tune.html');
    const asked = [
      'tune',
      '--profile',
      'a100-40gb-llama-3-8b',
      '--slo',
      'ttft_p99=800ms,tpot_p99=40ms',
      ...small,
    ];
    const { code, stdout, stderr } = await runServegym(...asked, '--json', '--report', page);
    assert.equal(code, 0, stderr);
    const found = JSON.parse(stdout);
    assert.equal(found.possible, true);
    const [winner] = found.candidates;
    const defaults = found.candidates.find((each: { is_default: boolean }) => each.is_default);
    assert.ok(winner.over_defaults.interval.low > 1, JSON.stringify(winner.over_defaults));
    assert.ok(winner.sustained_rps.value > defaults.sustained_rps.value);
    assert.match(found.commands[0].line, /^vllm serve .*--max-num-seqs \d+ --max-num-batched-tokens \d+/);
    assert.match(found.commands[1].line, /sglang\.launch_server .*--max-running-requests/);
    assert.match(
      readFileSync(page, 'utf8'),
      /"title":"Settings for.*vllm serve.*"title":"Verdict".*on the Pareto front.*"label":"Ranking"/s,
    );
    for (const { settings, assumes } of found.candidates) {
      assert.equal(assumes.includes('drafts'), settings.speculation > 0);
      assert.equal(assumes.includes(settings.quantization.toLowerCase()), settings.quantization !== 'FP16');
    }
    // The winner assumes something here: the best that does not is better than the defaults, and has its line.
    assert.match(found.verdict.basis, /^Confidence: low\..*To be sure, measure how many draft tokens/);
    const plain = found.candidates.find(
      ({ assumes }: { assumes: readonly string[] }) => assumes.length === 0,
    );
    assert.ok(!plain.is_default && plain.over_defaults.value > 1, JSON.stringify(plain));
    assert.match(
      found.verdict.basis,
      /assume nothing are \d.*: vllm serve meta-llama\/Meta-Llama-3-8B-Instruct/,
    );
    const single = await runCommand(...asked, '--json', '--threads', '1', '--search', 'default');
    const { wall_s: _, ...figures } = found;
    const { wall_s: __, ...others } = JSON.parse(single.stdout);
    assert.deepEqual(others, figures);

    const text = (await runCommand(...asked)).stdout;
    const order = ['One engine sustains', 'vLLM:', 'Settings, where', '95 % interval', 'Confirmed'];
    const places = order.map((part) => text.indexOf(part));
    assert.ok(!places.includes(-1), text);
    assert.deepEqual(
      places,
      places.toSorted((a, b) => a - b),
    );
  });

  it('tunes for requests in flight, of drawn lengths and of conversations', async () => {
    const closed = ['--search', 'max_num_batched_tokens', '--configurations', '16', '--json'];
    const chats = join(folder, 'chats.jsonl');
    const turns = Array.from({ length: 400 }, (_, i) =>
      JSON.stringify({
        session_id: `${Math.floor(i / 4)}`,
        ...(i % 4 === 0 ? { timestamp: 250 * i } : { delay: 500 }),
        ...{ input_length: 200 + (i % 300), output_length: 40 + (i % 50) },
      }),
    );
    writeFileSync(chats, turns.join('\n'));
    const drawn = ['closed:16x400:60~0.8', '--requests', '400'];
    const rates: number[] = [];
    for (const traffic of [drawn, [`closed:16x${chats}`]]) {
      const { code, stdout, stderr } = await runCommand(
        ...['tune', '--profile', 'a100-40gb-llama-3-8b', '--slo', 'ttft_p99=1s,tpot_p99=40ms'],
        ...[...closed, ...traffic],
      );
      assert.equal(code, 0, stderr);
      const found = JSON.parse(stdout);
      assert.deepEqual([found.concurrency, found.requests_per_s], [16, null]);
      rates.push(found.candidates[0].sustained_rps.value);
    }
    assert.ok(
      rates.every((rate) => rate > 0),
      `${rates}`,
    );
    const refused = await runCommand('tune', 'batch:9x9:9', '--profile', 'a100-40gb-llama-3-8b');
    assert.equal(refused.code, 2);
    assert.match(refused.stderr, /expected traffic with arrivals or requests in flight/);
  });

  it('lets the urgent class go first where its bound asks for that', async () => {
    const prices = join(folder, 'prices.json');
    writeFileSync(prices, '{"A100-40GB": 13.5}');
    const asked = [
      'tune',
      '--profile',
      'a100-40gb-llama-3-8b',
      '--search',
      'priority,max_num_seqs',
      ...small,
    ];
    const { code, stdout, stderr } = await runCommand(
      ...[...asked, '--priority-shares', '0.2,0.8', '--json'],
      ...['--slo', 'class0_ttft_p99=400ms,ttft_p99=20s', '--prices', prices],
    );
    assert.equal(code, 0, stderr);
    const { candidates, commands, deployment } = JSON.parse(stdout);
    assert.equal(candidates[0].settings.priority, true);
    assert.ok(candidates[0].over_defaults.interval.low > 1, JSON.stringify(candidates[0].over_defaults));
    assert.match(commands[0].line, / --scheduling-policy priority/);
    // Engines are not among the knobs.
    assert.ok(deployment.replicas === 1 || deployment.replicas === null);
    assert.equal(deployment.usd_per_hour, deployment.replicas && 13.5);
    const { usd_per_million_output_tokens: perToken, sustained_rps } = candidates[0];
    assert.ok(
      Math.abs((perToken * sustained_rps.value * 3600 * MEAN_OUTPUT) / 1e6 / 13.5 - 1) < 0.2,
      String(perToken),
    );
  });

  it('says what GPUs cost and who says so, and knows no spot price of some', async () => {
    const asked = ['tune', '--profile', 'a100-40gb-llama-3-8b', '--slo', 'tpot_p99=1ms', ...small];
    const { stderr } = await runCommand(...asked, '--configurations', '16');
    assert.match(stderr, /^A100-40GB: [\d.]+ USD an hour \(Lambda.*, 202\d-\d\d-\d\d\)$/m);
    const spot = await runCommand(...asked, '--spot');
    assert.equal(spot.code, 2);
    assert.match(spot.stderr, /no spot price of A100-40GB is known/);
  });

  it('says plainly when nothing meets the SLO, and what comes nearest', async () => {
    const asked = ['tune', '--profile', 'a100-40gb-llama-3-8b', '--slo', 'tpot_p99=1ms', ...small];
    const { code, stdout } = await runCommand(...asked, '--configurations', '16');
    assert.equal(code, 1);
    assert.match(stdout, /Nothing that was tried meets this SLO/);
    assert.match(stdout, /TPOT p99 at most 1 ms: [\d.]+ ms, not met: needs a limit of at least/);
  });

  const refused: readonly [what: string, args: string[], message: RegExp][] = [
    ['an SLO that is none', ['--slo', 'ttft<300'], /ttft_p99=300ms/],
    ['the same bound twice', ['--slo', 'ttft_p99=1s,ttft_p99=2s'], /twice/],
    ['a dimension that is none', ['--search', 'temperature'], /max_num_seqs/],
    ['a space that is not there', ['--search', 'none.json'], /none\.json/],
    [
      'evaluations that are none',
      ['--resume', trace],
      /expected evaluations of version .*INVALID_EVALUATIONS/,
    ],
    ['replicas that are none', ['--replicas', '8..1'], /1\.\.8/],
    ['a queue that does not answer', ['--queue', 'redis://127.0.0.1:1'], /Cannot use the queue/],
    ['a bound of classes that there are none of', ['--slo', 'class0_ttft_p99=1s'], /--priority-shares/],
    [
      'a bound of a class that there is none of',
      ['--slo', 'class5_ttft_p99=1s', '--priority-shares', '1,1'],
      /0, 1, got class 5/,
    ],
  ];
  for (const [what, args, message] of refused) {
    it(`refuses ${what}`, async () => {
      const { code, stdout, stderr } = await runCommand(
        'tune',
        '--profile',
        'a100-40gb-llama-3-8b',
        ...small,
        ...args,
      );
      assert.equal(code, 2, stderr);
      assert.equal(stdout, '');
      assert.match(stderr, message);
    });
  }

  it('tunes the deployment of a line, and refuses a line without its GPU', async () => {
    const line = ['--deployment', 'vllm serve meta-llama/Llama-3.1-8B-Instruct --max-num-seqs 64'];
    const asked = ['tune', ...small, ...line, '--slo', 'tpot_p99=1ms', '--configurations', '16', '--json'];
    const { code, stdout, stderr } = await runCommand(...asked, '--gpu', 'a100-40gb');
    assert.equal(code, 1, stderr);
    assert.equal(JSON.parse(stdout).profile, 'a100-40gb-llama-3-8b');
    const without = await runCommand(...asked);
    assert.deepEqual([without.code, /expected --gpu, one of/.test(without.stderr)], [2, true]);
  });

  it('searches the space that it prints, and refuses one without an engine that starts', async () => {
    const printed = await runCommand(
      'tune',
      ...small,
      '--profile',
      'a100-40gb-llama-3-8b',
      '--search',
      'print',
    );
    const space = JSON.parse(printed.stdout);
    assert.ok(space.max_num_seqs.includes(256) && space.kv_offloading_size === undefined);
    const file = join(folder, 'space.json');
    const asked = ['tune', ...small, '--profile', 'a100-40gb-llama-3-8b', '--search', file, '--json'];
    writeFileSync(file, JSON.stringify({ max_num_seqs: [40, 56], speculation: [1] }));
    const { code, stdout, stderr } = await runCommand(...asked);
    assert.equal(code, 0, stderr);
    const { candidates, considered, space: searched, not_searched: left } = JSON.parse(stdout);
    // vLLM's defaults are measured beside the two.
    assert.equal(considered, 3);
    assert.ok([40, 56].includes(candidates[0].settings.max_num_seqs));
    assert.equal(candidates[0].settings.speculation, 1);
    assert.deepEqual(searched, { max_num_seqs: [40, 56], speculation: [1] });
    assert.equal(left.quantization, 'not named');
    assert.equal(left.autoscaler, 'one engine serves');
    const autoscaler = [2, 40].map((target) => ({ requests_in_flight: target, down_seconds: 0 }));
    writeFileSync(file, JSON.stringify({ max_num_seqs: [40], replicas: [1, 8], autoscaler }));
    const { autoscaled, verdict } = JSON.parse((await runCommand(...asked, '--rate-scale', '4')).stdout);
    assert.ok(autoscaled.engines <= autoscaled.most, JSON.stringify(autoscaled));
    assert.match(verdict.deployment, /takes \d+ engines.* With Kubernetes’ autoscaler at \d+ requests in /);
    writeFileSync(file, JSON.stringify({ max_num_seqs: [512], max_num_batched_tokens: [256] }));
    const empty = await runCommand(...asked);
    assert.deepEqual([empty.code, empty.stdout], [2, '']);
    assert.match(
      empty.stderr,
      /no engine of a100-40gb-llama-3-8b starts .*\(256\).*\(512\).*EMPTY_SEARCH_SPACE/,
    );
  });

  it('refuses a trace of a few requests', async () => {
    const few = join(folder, 'few.csv');
    writeFileSync(few, 'arrival,input,output\n0,1,1\n1,1,1\n');
    const { code, stderr } = await runCommand('tune', few, '--profile', 'a100-40gb-llama-3-8b');
    assert.equal(code, 2);
    assert.match(stderr, /at least 200 requests/);
  });
});
