import { estimatedProfile, findGpu, findModel, vllmConstants } from '@servegym/profiles';
import { RandomStream, simulateTrace, VLLM_FRONT_END } from '@servegym/simulator';
import { summarize } from '@servegym/simulator/statistics';
import { benchmark } from '../harness.ts';

/**
 * Arrivals are Poisson. 5,103 tokens/s at 39.56 requests/s are 129 tokens a request, of which 128 are the limit of the task;
 * its prompts, articles of CNN/DailyMail, have 778 tokens on average. All requests are taken to be alike.
 */
const POINT = { requestsPerS: 39.56, inputTokens: 778, outputTokens: 128, ttftMs: 359, tpotMs: 23.1 };
const REQUESTS = 20_000;
/** Settings of the submission are not public: vLLM's defaults on an H100. */
const SETTINGS = { weights: 'FP8', maxNumSeqs: 1024, maxNumBatchedTokens: 8192 } as const;

export default benchmark({
  what: "MLPerf Inference 5.1's server point of Llama 3.1 8B in FP8 on one H100 (vLLM 0.10.0, submitted by Red Hat), predicted without a front end, and with one to four API servers as `benchmarks/run.ts measure-front-end` measures them.",
  options: {},
  *run() {
    const random = new RandomStream(1, 'arrivals');
    let atMs = 0;
    const trace = {
      source: 'MLPerf',
      arrivalMs: Float64Array.from({ length: REQUESTS }, () => {
        atMs += random.exponential(1000 / POINT.requestsPerS);
        return atMs;
      }),
      inputTokens: new Int32Array(REQUESTS).fill(POINT.inputTokens),
      outputTokens: new Int32Array(REQUESTS).fill(POINT.outputTokens),
    };
    const profile = estimatedProfile(findGpu('H100')!, findModel('llama-3-8b')!, 1, vllmConstants('0.10.0'));

    const inFlight = (e2eMs: number) => (POINT.requestsPerS * e2eMs) / 1000;
    const { outputTokens } = POINT;
    const measuredE2eMs = POINT.ttftMs + POINT.tpotMs * (outputTokens - 1);
    yield {
      'front end': 'measured',
      'TTFT mean, ms': POINT.ttftMs,
      'TPOT mean, ms': POINT.tpotMs,
      'in flight': inFlight(measuredE2eMs),
      'busy, %': null,
    };
    for (const [processes, slower] of [
      [0, 1],
      [1, 1],
      [1, 1.5],
      [1, 1.65],
      [2, 1],
      [4, 1],
    ] as const) {
      const frontEnd = {
        processes,
        perRequestMs: slower * VLLM_FRONT_END.perRequestMs,
        perPromptTokenUs: slower * VLLM_FRONT_END.perPromptTokenUs,
        perOutputTokenUs: slower * VLLM_FRONT_END.perOutputTokenUs,
      };
      const run = simulateTrace(trace, {
        profile: processes === 0 ? profile : { ...profile, frontEnd },
        ...SETTINGS,
      });
      const requestMs =
        frontEnd.perRequestMs +
        (frontEnd.perPromptTokenUs * POINT.inputTokens + frontEnd.perOutputTokenUs * outputTokens) / 1000;
      const busy = (POINT.requestsPerS * requestMs) / 1000 / processes;
      const name =
        processes === 0
          ? 'none'
          : `${processes} API server${processes > 1 ? 's' : ''}${slower > 1 ? `, ${slower} times as slow` : ''}`;
      const [ttft, tpot, e2e] = [run.ttftMs, run.tpotMs, run.e2eMs].map((values) => summarize(values).mean);
      yield {
        'front end': name,
        'TTFT mean, ms': ttft,
        'TPOT mean, ms': tpot,
        'in flight': inFlight(e2e),
        'busy, %': processes === 0 ? null : 100 * busy,
      };
    }
  },
});
