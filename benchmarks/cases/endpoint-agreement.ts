import { findProfile } from '@servegym/profiles';
import { type SimulationOptions, simulateTrace, type Trace } from '@servegym/simulator';
import { mean, summarize } from '@servegym/simulator/statistics';
import {
  type LoadRequest,
  type LoadResult,
  sendLoad,
} from '../../packages/servegym/test/bench-serve-load.ts';
import { startEndpointProcess } from '../../packages/servegym/test/endpoint-process.ts';
import { benchmark, median, type Row, text } from '../harness.ts';

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

const A100 = 'a100-40gb-llama-3-8b';
const scenarios: readonly Scenario[] = [
  { name: 'A100, 2 requests/s', profile: A100, rate: 2, input: [64, 1024], output: [32, 256] },
  { name: 'A100, 8 requests/s', profile: A100, rate: 8, input: [64, 1024], output: [32, 256] },
  {
    ...{ name: 'H100, 12 requests/s', profile: 'h100-80gb-llama-3-8b' },
    ...{ rate: 12, input: [64, 1024], output: [32, 256] },
  },
  { name: 'A100, 64 at once', profile: A100, rate: 0, input: [512, 512], output: [128, 128] },
  {
    ...{ name: 'A100, cap 8, a queue', profile: A100, rate: 6, input: [128, 512], output: [64, 128] },
    options: { maxNumSeqs: 8 },
    flags: '--max-num-seqs 8',
  },
  {
    ...{ name: 'A100, 16 in flight', profile: A100, rate: 0, input: [410, 512], output: [103, 128] },
    concurrency: 16,
  },
  {
    ...{ name: 'A100, conversations', profile: A100, rate: 2, input: [64, 1024], output: [32, 128] },
    conversation: { turns: 4, thinkMs: 1500 },
  },
  {
    ...{ name: 'A100, 4 draft tokens', profile: A100, rate: 4, input: [64, 512], output: [64, 256] },
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

function makeLoad({ rate, input, output, conversation }: Scenario, seconds: number): LoadRequest[] {
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

async function ownAccount(url: string) {
  const text = await (await fetch(`${url}/metrics`)).text();
  const read = (name: string) => Number(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)`, 'm').exec(text)![1]);
  return {
    requests: read('vllm:time_to_first_token_seconds_count'),
    /** Sum of the simulated times to first token, ms. */
    ttftSumMs: read('vllm:time_to_first_token_seconds_sum') * 1000,
    batches: read('servegym_endpoint_lateness_seconds_count'),
    /** Sum of the delays with which tokens were handed out, ms. */
    latenessSumMs: read('servegym_endpoint_lateness_seconds_sum') * 1000,
  };
}

/** Predicted and measured figures of a load, and the error of the measured ones less the overhead in TTFT. */
function* compare(
  name: string,
  run: ReturnType<typeof predict>,
  results: readonly LoadResult[],
  ttftOverheadMs: number,
) {
  for (const [figure, predicted, measured, overheadMs] of [
    ['TTFT', run.ttftMs, results.map((result) => result.ttftMs), ttftOverheadMs],
    ['TPOT', run.tpotMs, results.map((result) => result.tpotMs), 0],
  ] as const) {
    const expected = summarize(predicted);
    const seen = summarize(Float64Array.from(measured));
    for (const statistic of ['mean', 'p50', 'p90'] as const)
      yield {
        ...{ load: name, figure: `${figure} ${statistic}` },
        'predicted, ms': expected[statistic],
        'measured, ms': seen[statistic],
        'difference, %': 100 * (seen[statistic] / expected[statistic] - 1),
        'without the overhead, %': 100 * ((seen[statistic] - overheadMs) / expected[statistic] - 1),
      };
  }
}

async function measure(scenario: Scenario, seconds: number) {
  const { name, profile, flags, concurrency } = scenario;
  const line = flags === undefined ? [] : ['--deployment', flags];
  const { url, stop } = await startEndpointProcess('--profile', profile, ...line);
  try {
    const load = makeLoad(scenario, seconds);
    // The first requests pay for compilation on both sides.
    const warmUp = Array.from({ length: 60 }, (_, i) => ({
      atMs: i * 30,
      inputTokens: 64,
      outputTokens: 20,
    }));
    await sendLoad(url, 'Llama-3-8B', warmUp);
    const before = await ownAccount(url);
    const results = await sendLoad(url, 'Llama-3-8B', load, concurrency);
    const after = await ownAccount(url);
    const requests = after.requests - before.requests;
    const ttftMs =
      mean(results.map((result) => result.ttftMs)) - (after.ttftSumMs - before.ttftSumMs) / requests;
    const run = predict(scenario, load, results);
    const apart = Array.from(run.ids, (request, i) => results[request].ttftMs - run.ttftMs[i]);
    const overhead: Row = {
      ...{ load: name, requests },
      'overhead in TTFT, ms: mean': ttftMs,
      median: median(apart),
      'tokens handed out late, ms: mean':
        (after.latenessSumMs - before.latenessSumMs) / (after.batches - before.batches),
      'HTTP round trip, ms': await roundTripMs(url),
    };
    return { figures: [...compare(name, run, results, ttftMs)], overhead };
  } finally {
    await stop();
  }
}

export default benchmark({
  what: 'TTFT and TPOT that a client measures at `servegym endpoint`, beside what `simulate` predicts for the same load. The endpoint runs in a process of its own; the client follows `vllm bench serve`. `--seconds` of each load; `--only NAME` of one.',
  options: { seconds: 40, only: text },
  async *run({ seconds, only }) {
    const overheads: Row[] = [];
    let worst = 0;
    for (const scenario of scenarios.filter(({ name }) => only === undefined || name === only)) {
      const { figures, overhead } = await measure(scenario, seconds);
      yield* figures;
      overheads.push(overhead);
      worst = Math.max(worst, ...figures.map((row) => Math.abs(row['without the overhead, %'])));
    }
    yield `Worst without the overhead: ${worst.toFixed(1)} %`;
    yield* overheads;
  },
});
