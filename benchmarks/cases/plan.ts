import { LocalJobs } from '@servegym/jobs';
import { parseSlo, planFleet, splitTrace, TUNE_JOB_KINDS } from '@servegym/operators';
import { findReferenceFiles, REFERENCE_DATA, readTrace } from '@servegym/operators/traces';
import { listProfiles } from '@servegym/profiles';
import { repeatTrace, scaleRate, type Trace } from '@servegym/simulator';
import { benchmark, required, timed } from '../harness.ts';

/** Limits of chat, and those of Mooncake's paper for its traffic, where prompts of 100,000 tokens are answered too. */
const CHAT = parseSlo('ttft_p99=1s,tpot_p99=50ms');
const LONG = parseSlo('ttft_p90=30s,tpot_p90=100ms');

/** The trace again and again until it has so many requests, in a day. */
function dayOf(trace: Trace, requests: number): Trace {
  const source = `${requests.toLocaleString('en-US')} requests in a day`;
  const repeated = { ...repeatTrace(trace, requests), source };
  return scaleRate(repeated, repeated.arrivalMs[requests - 1] / 86_400_000);
}

export default benchmark({
  what: 'How long `servegym plan` takes: two public traces of `--data` over all profiles of one model, and a day of 537,600 requests (as many as the published sweep of Dynamo has) over the same.',
  options: { data: required, model: 'Llama-3-8B', requests: 8000 },
  async *run({ data, model, requests }) {
    const profiles = listProfiles().filter((profile) => profile.model.name === model);
    const read = async (file: Parameters<typeof findReferenceFiles>[1][number]) =>
      (await readTrace(findReferenceFiles(data, [file])[0], {})).trace;
    const azure = await read(REFERENCE_DATA.azureConversation);
    const mooncake = await read(REFERENCE_DATA.mooncakeConversation);
    const jobs = new LocalJobs({ kinds: TUNE_JOB_KINDS, threads: 2 });
    yield `${profiles.length} profiles of ${model}, two threads`;
    try {
      for (const [trace, slo] of [
        [azure, CHAT],
        [mooncake, LONG],
        [dayOf(azure, 537_600), CHAT],
      ] as const) {
        const split = splitTrace(trace, requests);
        const { result, cpuS } = await timed(() =>
          planFleet(
            jobs,
            profiles,
            { trace, split, refused: { requests: 0, longest: 0, limit: 0 } },
            { slo, minQuality: 0.98, mostEngines: 64, seed: 0, allow: [] },
          ),
        );
        const { plans } = result;
        const of = (isOne: (plan: (typeof plans)[number]) => boolean) => plans.filter(isOne).length;
        const [best] = plans;
        yield {
          trace: trace.source,
          'wall, s': result.wallS,
          'processor, s': cpuS,
          simulations: result.simulations,
          'simulated requests': result.simulatedRequests,
          plans: plans.length,
          refused: result.notPlanned.length,
          'memory, MiB': process.resourceUsage().maxRSS / 1024,
          cheapest: best && `${best.engines} x ${best.profile.name} ${best.settings.weights}`,
          'USD/h': best?.usdPerHour,
          'at least, USD/h': best?.lowerBoundUsdPerHour,
          'prefill apart': of(({ pools }) => pools[0].role !== 'all'),
          'routed by prefix': of(({ router }) => router === 'prefix_aware'),
          'two kinds of GPU': of(({ pools }) => pools[0].profile !== pools.at(-1)!.profile),
          'two kinds tried': result.mixedFleetsTried,
        };
      }
    } finally {
      await jobs.close();
    }
  },
});
