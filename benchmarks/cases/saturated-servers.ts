import { blocksOf, type Deployment } from '@servegym/operators';
import { drawLengths, type EngineProfile, kvMemoryGiB, poissonTrace, type Trace } from '@servegym/simulator';
import { mean } from '@servegym/simulator/statistics';
import { vllmDefaults } from '../../packages/operators/src/search/candidate.ts';
import { serveTraffic } from '../../packages/operators/src/search/load-point.ts';
import { readResults, requestsOf } from '../fidelity/gpustack.ts';
import { benchmark, median, required } from '../harness.ts';
import { MLPERF_COLUMNS, PRECISIONS, profilesOf, readMlperf } from './plan-choices.ts';

export default benchmark({
  what: `Output tokens a second, TTFT and TPOT of saturated servers in \`--data FOLDER\` (docs/reference-data.md), by GPU and engine: errors, positive when the simulator says more.
gpustack's performance lab (Apache-2.0): all requests at once with the mean lengths, outputs of ShareGPT exponential, served as the printed commands say, on shipped profiles.
MLPerf Inference v5.1, closed division (derived figures, not verified by MLCommons Association): prompt lengths are not published, so each row is predicted with \`--inputs\` tokens; outputs are uniform from 0.4 to 1.6 of the published mean. An engine takes the fewest GPUs whose memory is left a third for KV, and its share of the load, with 1,024 sequences and a budget of 8,192 tokens: choices, as no flags are published. Profiles: shipped ones, else data sheets. TensorRT-LLM is another engine than the simulated one.`,
  options: { data: required, inputs: [250, 500] },
  async *run({ data, inputs }) {
    const lab = await labAnswers(data);
    yield* byServer(lab, 'gpustack');
    yield* byServer(
      lab.flatMap(({ steady, ...answer }) =>
        steady === undefined ? [] : [{ ...answer, throughput: steady }],
      ),
      'gpustack, answers of up to 8 tokens, but for a wait before all',
    );
    const rows = await readMlperf(data, COLUMNS);
    for (const input of inputs) {
      const answers = rows.flatMap((row) => mlperfAnswer(row, input));
      yield* byServer(answers, `MLPerf v5.1, ${input} tokens in`);
      const amd = answers.flatMap(({ model, ...answer }) => (model ? [{ ...answer, server: model }] : []));
      yield* byServer(amd, `of these AMD's offline by model, ${input} tokens in`);
      yield `${answers.length} of ${rows.length} results; the others have a precision that no profile has, or lack a figure`;
    }
  },
});

/** Errors of a server, relative. */
interface Answer {
  readonly server: string;
  readonly status: EngineProfile['status'];
  readonly throughput?: number;
  readonly ttft?: number;
  readonly tpot?: number;
  /** Of short answers, throughput against the measured one without what all requests wait for. */
  readonly steady?: number;
  /** GPU and model of an offline result on AMD. */
  readonly model?: string;
}

/** Answers that end with their prefill, tokens. */
const SHORT = 8;

function* byServer(answers: readonly Answer[], source: string) {
  const servers = Map.groupBy(answers, ({ server, status }) => `${server} (${status})`);
  for (const [server, own] of [...servers].sort(([a], [b]) => (a < b ? -1 : 1))) {
    const middle = (of: 'throughput' | 'ttft' | 'tpot', size = Math.abs) => {
      const errors = own.flatMap((answer) => (answer[of] === undefined ? [] : size(answer[of])));
      return errors.length === 0 ? null : 100 * median(errors);
    };
    yield {
      ...{ source, 'GPU, engine, scenario (profile)': server, results: own.length },
      'tokens/s, median error, %': middle('throughput'),
      signed: middle('throughput', Number),
      'TTFT mean, %': middle('ttft'),
      'TPOT mean, %': middle('tpot'),
    };
  }
}

const LAB = ['generated_tokens_per_s', 'ttft_mean_ms', 'request_rate', 'max_concurrency'] as const;

async function labAnswers(data: string): Promise<Answer[]> {
  return (await readResults(data, LAB)).flatMap(({ row, served }) => {
    const isSaturated = row.text('request_rate') === 'inf' && row.text('max_concurrency') === '';
    const measured = Number(row.text('generated_tokens_per_s'));
    if (!isSaturated || !(measured > 0)) return [];
    const answer = answerOf(served, requestsOf(row));
    const ttftMs = Number(row.text('ttft_mean_ms'));
    // Prompts that are served one after the other wait for half of the time of all, in the mean, and for what comes before.
    const servingS = 2 * (row.number('duration_s') - ttftMs / 1000);
    return {
      server: `${row.text('gpu')}, ${row.text('engine')}`,
      status: served.profile.weights[served.settings.weights]!.status,
      throughput: answer.tokensPerS / measured - 1,
      ...(ttftMs > 0 && { ttft: answer.ttftMs / ttftMs - 1 }),
      ...(ttftMs > 0 &&
        row.number('total_output_tokens') <= SHORT * row.number('successful_requests') && {
          steady: (answer.tokensPerS * servingS) / row.number('total_output_tokens') - 1,
        }),
    };
  });
}

function answerOf(
  { profile, settings, engines, kvBlocks }: Pick<Deployment, 'profile' | 'settings' | 'engines' | 'kvBlocks'>,
  trace: Trace,
) {
  const how = { load: 1, seed: 0, replicas: engines, kvBlocks };
  const { ids, e2eMs, ttftMs, tpotMs } = serveTraffic(profile, settings, blocksOf(trace), how);
  const endMs = e2eMs.reduce((last, ms, i) => Math.max(last, trace.arrivalMs[ids[i]] + ms), 0);
  const tokens = trace.outputTokens.reduce((sum, each) => sum + each, 0);
  const tokensPerS = (1000 * tokens) / endMs;
  return { tokensPerS, ttftMs: mean(ttftMs), tpotMs: mean(tpotMs.filter((ms) => ms > 0)) };
}

const COLUMNS = [...MLPERF_COLUMNS, 'engine', 'target_qps', 'ttft_mean_ms', 'tpot_mean_ms'] as const;
const LEAST_KV_SHARE = 1 / 3;
const SETTINGS = { maxNumSeqs: 1024, maxNumBatchedTokens: 8192 };
/** Requests of an offline run, and seconds of the others. */
const REQUESTS = 2000;
const SECONDS = 120;

function mlperfAnswer(
  row: Awaited<ReturnType<typeof readMlperf<(typeof COLUMNS)[number]>>>[number],
  input: number,
): Answer[] {
  const weights = PRECISIONS[row.text('weights')];
  const profile = profilesOf(row).find(
    (each) => kvMemoryGiB(each, weights, false) >= LEAST_KV_SHARE * each.gpu.memoryGiB,
  );
  const scenario = row.text('scenario');
  const isOffline = scenario === 'Offline';
  const needed = ['output_tokens_per_sample', isOffline ? 'tokens_per_s' : 'target_qps'] as const;
  if (profile === undefined || needed.some((column) => row.text(column) === '')) return [];
  const engines = row.number('accelerators') / profile.gpu.count;
  // Uniform from a quarter of these up: the mean is 0.625 of them.
  const [inputTokens, outputTokens] = [input, row.number('output_tokens_per_sample')].map((of) =>
    Math.round(of / 0.625),
  );
  const lengths = { inputTokens, outputTokens, range: 0.25 };
  const trace = isOffline
    ? drawLengths({ ...lengths, requests: REQUESTS })
    : poissonTrace(lengths, row.number('target_qps') / engines, SECONDS, 0);
  const settings = { ...vllmDefaults(profile), ...SETTINGS, weights };
  const answer = answerOf({ profile, settings, engines: 1 }, trace);
  return [
    {
      server: `${row.text('accelerator')}, ${row.text('engine')}, ${scenario}`,
      status: profile.weights[weights]!.status,
      ...(isOffline &&
        row.text('accelerator').startsWith('mi') && {
          model: `${row.text('accelerator')}, ${row.text('model')}`,
        }),
      ...(isOffline
        ? { throughput: (engines * answer.tokensPerS) / row.number('tokens_per_s') - 1 }
        : {
            ttft: answer.ttftMs / row.number('ttft_mean_ms') - 1,
            tpot: answer.tpotMs / row.number('tpot_mean_ms') - 1,
          }),
    },
  ];
}
