// TTFT and TPOT that a client measures at `servegym endpoint`, beside what `simulate` predicts for the same load. The
// endpoint runs in a process of its own; the client follows `vllm bench serve`.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { findProfile } from '@servegym/profiles';
import { type SimulationOptions, simulateTrace, type Trace } from '@servegym/simulator';
import { summarize } from '@servegym/simulator/statistics';
import { type LoadRequest, type LoadResult, sendLoad } from '../packages/servegym/test/bench-serve-load.ts';
import { median } from './harness.ts';

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '40' },
    json: { type: 'boolean', default: false },
  },
});
const seconds = Number(values.seconds);

interface Scenario {
  readonly name: string;
  readonly profile: string;
  /** Requests a second, Poisson; 0 sends all at once. */
  readonly rate: number;
  /** Requests kept in flight, instead of a rate. */
  readonly concurrency?: number;
  /** Requests of a conversation, each a mean think time after the answer to the one before, ms. */
  readonly conversation?: { readonly turns: number; readonly thinkMs: number };
  /** Prompt and output, tokens; drawn evenly from the ranges. */
  readonly input: readonly [number, number];
  readonly output: readonly [number, number];
  readonly options?: Partial<SimulationOptions>;
  readonly flags?: string;
}

const scenarios: readonly Scenario[] = [
  {
    name: 'A100, 2 requests/s',
    profile: 'a100-40gb-llama-3-8b',
    rate: 2,
    input: [64, 1024],
    output: [32, 256],
  },
  {
    name: 'A100, 8 requests/s',
    profile: 'a100-40gb-llama-3-8b',
    rate: 8,
    input: [64, 1024],
    output: [32, 256],
  },
  {
    name: 'H100, 12 requests/s',
    profile: 'h100-80gb-llama-3-8b',
    rate: 12,
    input: [64, 1024],
    output: [32, 256],
  },
  {
    name: 'A100, 64 at once',
    profile: 'a100-40gb-llama-3-8b',
    rate: 0,
    input: [512, 512],
    output: [128, 128],
  },
  {
    name: 'A100, cap 8, a queue',
    profile: 'a100-40gb-llama-3-8b',
    rate: 6,
    input: [128, 512],
    output: [64, 128],
    options: { maxNumSeqs: 8 },
    flags: '--max-num-seqs 8',
  },
  {
    name: 'A100, 16 in flight',
    profile: 'a100-40gb-llama-3-8b',
    rate: 0,
    concurrency: 16,
    input: [410, 512],
    output: [103, 128],
  },
  {
    name: 'A100, conversations',
    profile: 'a100-40gb-llama-3-8b',
    rate: 2,
    conversation: { turns: 4, thinkMs: 1500 },
    input: [64, 1024],
    output: [32, 128],
  },
  {
    name: 'A100, 4 draft tokens',
    profile: 'a100-40gb-llama-3-8b',
    rate: 4,
    input: [64, 512],
    output: [64, 256],
    options: { speculationDepth: 4 },
    flags: `--speculative-config '{"num_speculative_tokens":4}'`,
  },
];

/** A fixed sequence of draws, the same on every run. */
function drawer(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

function makeLoad({ rate, input, output, conversation }: Scenario): LoadRequest[] {
  const draw = drawer(7);
  const within = ([low, high]: readonly [number, number]) => low + Math.floor(draw() * (high - low + 1));
  const load: LoadRequest[] = [];
  for (let atMs = 0; rate === 0 ? load.length < 64 : atMs < seconds * 1000; ) {
    load.push({ atMs, inputTokens: within(input), outputTokens: within(output) });
    for (let turn = 1; turn < (conversation?.turns ?? 1); turn += 1) {
      const thinkMs = -Math.log(1 - draw()) * conversation!.thinkMs;
      load.push({
        ...{ atMs: thinkMs, isFollowUp: true },
        ...{ inputTokens: within(input), outputTokens: within(output) },
      });
    }
    if (rate > 0) atMs += (-Math.log(1 - draw()) / rate) * 1000;
  }
  return load;
}

/** Prediction of `simulate` for the load as it was sent. */
function predict(scenario: Scenario, load: readonly LoadRequest[], sent: readonly LoadResult[]) {
  let startMs = 0;
  const trace: Trace = {
    source: scenario.name,
    // Those of requests that are kept in flight tell only the order, and so do those of follow-ups.
    arrivalMs: Float64Array.from(sent, ({ sentMs }, i) => {
      if (!load[i].isFollowUp) startMs = sentMs - sent[0].sentMs;
      return startMs;
    }),
    inputTokens: Int32Array.from(load, ({ inputTokens }) => inputTokens),
    outputTokens: Int32Array.from(load, ({ outputTokens }) => outputTokens),
    ...(scenario.conversation !== undefined && {
      followUps: {
        previous: Int32Array.from(load, ({ isFollowUp }, i) => (isFollowUp ? i - 1 : -1)),
        thinkMs: Float64Array.from(load, ({ isFollowUp, atMs }) => (isFollowUp ? atMs : 0)),
      },
    }),
  };
  return simulateTrace(trace, {
    ...{ profile: findProfile(scenario.profile), concurrency: scenario.concurrency },
    ...scenario.options,
  });
}

async function startEndpoint(scenario: Scenario) {
  const main = join(import.meta.dirname, '../packages/servegym/src/main.ts');
  const { profile, flags } = scenario;
  const line = flags === undefined ? [] : ['--deployment', flags];
  const args = ['endpoint', '--port', '0', '--profile', profile, ...line];
  const child = spawn(process.execPath, [main, ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
  child.stdout.setEncoding('utf8');
  let said = '';
  while (!said.includes('\n')) said += (await once(child.stdout, 'data'))[0];
  const url = /(http:\S+)\/v1/.exec(said)![1];
  return {
    url,
    async stop() {
      child.kill('SIGKILL');
      await once(child, 'exit');
    },
  };
}

/** Median time of a request that asks for nothing, ms: what client, loopback and HTTP cost. */
async function roundTripMs(url: string): Promise<number> {
  const times: number[] = [];
  for (let i = 0; i < 200; i++) {
    const startMs = performance.now();
    await (await fetch(`${url}/health`)).text();
    times.push(performance.now() - startMs);
  }
  return median(times.slice(50));
}

/** Means over all requests so far, by the endpoint's own account, and how many there were. */
interface OwnAccount {
  readonly requests: number;
  /** Sum of the simulated times to first token, ms. */
  readonly ttftSumMs: number;
  readonly batches: number;
  /** Sum of the delays with which tokens were handed out, ms. */
  readonly latenessSumMs: number;
}

async function ownAccount(url: string): Promise<OwnAccount> {
  const text = await (await fetch(`${url}/metrics`)).text();
  const read = (name: string) => Number(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)`, 'm').exec(text)![1]);
  return {
    requests: read('vllm:time_to_first_token_seconds_count'),
    ttftSumMs: read('vllm:time_to_first_token_seconds_sum') * 1000,
    batches: read('servegym_endpoint_lateness_seconds_count'),
    latenessSumMs: read('servegym_endpoint_lateness_seconds_sum') * 1000,
  };
}

interface Row {
  readonly scenario: string;
  readonly figure: string;
  readonly predictedMs: number;
  readonly measuredMs: number;
  readonly errorPercent: number;
  /** Of the measured less the overhead in TTFT that the second table tells. */
  readonly errorWithoutOverheadPercent: number;
}

interface Overhead {
  readonly scenario: string;
  readonly requests: number;
  /** Measured TTFT less the one that the endpoint simulated, mean. */
  readonly ttftMs: number;
  /** Measured TTFT less the predicted one, request by request, median. */
  readonly ttftMedianMs: number;
  /** Delay with which the endpoint hands tokens out, mean. */
  readonly latenessMs: number;
  readonly roundTripMs: number;
}

function compare(
  name: string,
  run: ReturnType<typeof predict>,
  results: readonly LoadResult[],
  ttftOverheadMs: number,
): Row[] {
  const rows: Row[] = [];
  const percent = (measured: number, predicted: number) => (measured / predicted - 1) * 100;
  for (const [figure, predicted, measured, overheadMs] of [
    ['TTFT', run.ttftMs, results.map((result) => result.ttftMs), ttftOverheadMs],
    ['TPOT', run.tpotMs, results.map((result) => result.tpotMs), 0],
  ] as const) {
    const expected = summarize(predicted);
    const seen = summarize(Float64Array.from(measured));
    for (const statistic of ['mean', 'p50', 'p90'] as const) {
      rows.push({
        scenario: name,
        figure: `${figure} ${statistic}`,
        predictedMs: expected[statistic],
        measuredMs: seen[statistic],
        errorPercent: percent(seen[statistic], expected[statistic]),
        errorWithoutOverheadPercent: percent(seen[statistic] - overheadMs, expected[statistic]),
      });
    }
  }
  return rows;
}

const rows: Row[] = [];
const overheads: Overhead[] = [];
for (const scenario of scenarios) {
  const endpoint = await startEndpoint(scenario);
  try {
    const load = makeLoad(scenario);
    // The first requests pay for compilation on both sides.
    const warmUp = Array.from({ length: 60 }, (_, i) => ({
      atMs: i * 30,
      inputTokens: 64,
      outputTokens: 20,
    }));
    await sendLoad(endpoint.url, 'Llama-3-8B', warmUp);
    const before = await ownAccount(endpoint.url);
    const results = await sendLoad(endpoint.url, 'Llama-3-8B', load, scenario.concurrency);
    const after = await ownAccount(endpoint.url);
    const requests = after.requests - before.requests;
    const measuredMs = results.reduce((sum, { ttftMs }) => sum + ttftMs, 0) / results.length;
    const ttftMs = measuredMs - (after.ttftSumMs - before.ttftSumMs) / requests;
    const run = predict(scenario, load, results);
    const ttftMedianMs = median(Array.from(run.ids, (request, i) => results[request].ttftMs - run.ttftMs[i]));
    overheads.push({
      scenario: scenario.name,
      requests,
      ttftMs,
      ttftMedianMs,
      latenessMs: (after.latenessSumMs - before.latenessSumMs) / (after.batches - before.batches),
      roundTripMs: await roundTripMs(endpoint.url),
    });
    rows.push(...compare(scenario.name, run, results, ttftMs));
  } finally {
    await endpoint.stop();
  }
  if (process.stderr.isTTY) process.stderr.write(`${scenario.name} done\n`);
}

if (values.json) {
  console.log(JSON.stringify({ seconds, rows, overheads }, null, 2));
} else {
  const signed = (percent: number) => `${percent >= 0 ? '+' : ''}${percent.toFixed(1)} %`;
  console.log('| load | figure | predicted, ms | measured, ms | difference | without the overhead |');
  console.log('|---|---|---:|---:|---:|---:|');
  for (const row of rows) {
    console.log(
      `| ${row.scenario} | ${row.figure} | ${row.predictedMs.toFixed(2)} | ${row.measuredMs.toFixed(2)} | ${signed(row.errorPercent)} | ${signed(row.errorWithoutOverheadPercent)} |`,
    );
  }
  const worst = Math.max(...rows.map((row) => Math.abs(row.errorWithoutOverheadPercent)));
  console.log(`\nWorst without the overhead: ${worst.toFixed(1)} %\n`);
  console.log(
    '| load | requests | overhead in TTFT, ms: mean | median | tokens handed out late, ms: mean | HTTP round trip, ms |',
  );
  console.log('|---|---:|---:|---:|---:|---:|');
  for (const { scenario, requests, ttftMs, ttftMedianMs, latenessMs, roundTripMs: trip } of overheads) {
    console.log(
      `| ${scenario} | ${requests} | ${ttftMs.toFixed(2)} | ${ttftMedianMs.toFixed(2)} | ${latenessMs.toFixed(2)} | ${trip.toFixed(2)} |`,
    );
  }
}
