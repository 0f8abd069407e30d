import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it } from 'node:test';
import { findProfile } from '@servegym/profiles';
import { simulateTrace } from '@servegym/simulator';
import { addContribution, contributedErrors } from './contributed.ts';
import { contributedTable } from './fidelity-report.ts';

const labels = {
  gpu: 'h100',
  command: 'vllm serve meta-llama/Llama-3.1-8B-Instruct --max-num-seqs 64',
  source: 'a test',
};

/** JSON lines of a server whose requests take `factor` times as long as the shipped profile says. */
function measured(count: number, factor: number): string {
  const trace = {
    source: 'drawn',
    arrivalMs: Float64Array.from({ length: count }, (_, i) => 100 * i),
    inputTokens: new Int32Array(count).fill(500),
    outputTokens: new Int32Array(count).fill(100),
  };
  const run = simulateTrace(trace, {
    profile: findProfile('h100-80gb-llama-3-8b'),
    maxNumSeqs: 64,
    maxNumBatchedTokens: 8192,
  });
  return Array.from(run.ids, (id, i) => {
    const times = { ttft_ms: factor * run.ttftMs[i], e2e_ms: factor * run.e2eMs[i] };
    return JSON.stringify({
      arrival_s: trace.arrivalMs[id] / 1000,
      input_tokens: 500,
      output_tokens: 100,
      ...times,
    });
  }).join('\n');
}

it('a contributed measurement is kept with its server, and its errors are stated', () => {
  const folder = mkdtempSync(join(tmpdir(), 'contributed-'));
  const [{ profile, requests, errors }] = addContribution(measured(60, 2), labels, folder);
  assert.equal(profile, 'h100-80gb-llama-3-8b');
  assert.equal(requests, 60);
  assert.ok(Math.abs(errors.tpot.mean + 50) < 8, `${errors.tpot.mean}`);
  addContribution(measured(60, 1), labels, folder);
  assert.deepEqual(readdirSync(folder), ['001-h100-80gb-llama-3-8b.json', '002-h100-80gb-llama-3-8b.json']);
  const kept = JSON.parse(readFileSync(join(folder, '001-h100-80gb-llama-3-8b.json'), 'utf8'));
  assert.deepEqual([kept.gpu, kept.command, kept.requests.length], [labels.gpu, labels.command, 60]);
  const [twice, same] = contributedErrors(folder).map((each) => each.errors.tpot.mean);
  assert.ok(twice < -40 && Math.abs(same) < 10, `${twice} ${same}`);
});

/** What `vllm bench serve --max-concurrency 32` writes of a server that takes `factor` times as long as the shipped profile. */
function closedLoop(factor: number): string {
  const count = 128;
  const trace = {
    source: 'drawn',
    arrivalMs: new Float64Array(count),
    inputTokens: new Int32Array(count).fill(2000),
    outputTokens: new Int32Array(count).fill(100),
  };
  const profile = findProfile('h100-80gb-llama-3-8b');
  const served = { profile, maxNumSeqs: 64, maxNumBatchedTokens: 8192, concurrency: 32 };
  const run = simulateTrace(trace, served);
  const seconds = (ms: Float64Array) => Array.from(ms, (each) => (factor * each) / 1000);
  const [arrivals, ttfts, e2es] = [run.arrivalMs!, run.ttftMs, run.e2eMs].map(seconds);
  return JSON.stringify({
    request_rate: 'inf',
    max_concurrency: 32,
    input_lens: [...trace.inputTokens],
    output_lens: [...trace.outputTokens],
    ...{ start_times: arrivals, ttfts, itls: e2es.map((e2e, i) => [e2e - ttfts[i]]) },
  });
}

it('clients that wait for answers are predicted as such, not at the times of their requests', () => {
  const folder = mkdtempSync(join(tmpdir(), 'contributed-'));
  const [{ load, errors, measuredMs }] = addContribution(closedLoop(0.8), labels, folder);
  assert.equal(load, '32 in flight, 2000 + 100');
  for (const what of ['ttft', 'tpot', 'e2e'] as const)
    assert.ok(Math.abs(errors[what].mean - 25) < 1, `${what} ${errors[what].mean}`);
  const [again] = contributedErrors(folder);
  assert.deepEqual([again.load, again.errors.tpot.mean], [load, errors.tpot.mean]);
  const report = contributedTable(contributedErrors(folder));
  assert.match(report, /vllm serve meta-llama.*profile `h100-80gb-llama-3-8b` \(measured\)/);
  assert.ok(
    report.includes(
      `| 32 in flight, 2000 + 100 | 128 | ${Number(measuredMs.ttft.mean.toPrecision(4))} | +25`,
    ),
  );
});

it('a measurement that says too little, or of another server, is refused', () => {
  const folder = mkdtempSync(join(tmpdir(), 'contributed-'));
  assert.throws(() => addContribution(measured(10, 1), labels, folder), /50 requests or more/);
  const short = { ...labels, command: `${labels.command} --max-model-len 512` };
  assert.throws(() => addContribution(measured(60, 1), short, folder), /within --max-model-len 512, got 600/);
  assert.throws(() => addContribution(measured(60, 1), { ...labels, gpu: 'abacus' }, folder), /abacus/);
  assert.deepEqual(readdirSync(folder), []);
});
