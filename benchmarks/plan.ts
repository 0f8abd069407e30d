// npx node benchmarks/plan.ts --data <folder of the public traces>
//
// How long `servegym plan` takes: two public traces over all profiles of one model, and a day of 537,600 requests (as
// many as NVIDIA's published sweep of Dynamo has) over the same.
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { LocalJobs } from '@servegym/jobs';
import { parseSlo, planFleet, splitTrace, TUNE_JOB_KINDS } from '@servegym/operators';
import { findReferenceFiles, REFERENCE_DATA, readTrace } from '@servegym/operators/traces';
import { listProfiles } from '@servegym/profiles';
import { repeatTrace, scaleRate, type Trace } from '@servegym/simulator';

const { values } = parseArgs({
  options: {
    data: { type: 'string' },
    model: { type: 'string', default: 'Llama-3-8B' },
    requests: { type: 'string', default: '8000' },
  },
});
if (values.data === undefined) throw new Error('expected --data <folder>, see docs/reference-data.md');
const data = resolve(values.data);
const profiles = listProfiles().filter(({ model }) => model.name === values.model);
/** Limits of chat, and those of Mooncake's paper for its traffic, where prompts of 100,000 tokens are answered too. */
const CHAT = parseSlo('ttft_p99=1s,tpot_p99=50ms');
const LONG = parseSlo('ttft_p90=30s,tpot_p90=100ms');

/** The trace again and again until it has so many requests, in a day. */
function dayOf(trace: Trace, requests: number): Trace {
  const source = `${requests.toLocaleString('en-US')} requests in a day`;
  const repeated = { ...repeatTrace(trace, requests), source };
  return scaleRate(repeated, repeated.arrivalMs[requests - 1] / 86_400_000);
}

const read = async (file: Parameters<typeof findReferenceFiles>[1][number]) =>
  (await readTrace(findReferenceFiles(data, [file])[0], {})).trace;
const azure = await read(REFERENCE_DATA.azureConversation);
const mooncake = await read(REFERENCE_DATA.mooncakeConversation);
const jobs = new LocalJobs({ kinds: TUNE_JOB_KINDS, threads: 2 });
console.log(`${profiles.length} profiles of ${values.model}, two threads`);
try {
  for (const [trace, slo] of [
    [azure, CHAT],
    [mooncake, LONG],
    [dayOf(azure, 537_600), CHAT],
  ] as const) {
    const split = splitTrace(trace, Number(values.requests));
    const cpu = process.cpuUsage();
    const {
      plans,
      notPlanned: refused,
      mixedFleetsTried: mixedTried,
      simulations,
      simulatedRequests,
      wallS,
    } = await planFleet(
      jobs,
      profiles,
      { trace, split },
      { slo, minQuality: 0.98, mostEngines: 64, seed: 0 },
    );
    const { user, system } = process.cpuUsage(cpu);
    const rss = process.resourceUsage().maxRSS / 1024;
    console.log(
      `${trace.source}: ${wallS.toFixed(1)} s (${((user + system) / 1e6).toFixed(1)} s of processor time), ${simulations.toLocaleString('en-US')} simulations of ${simulatedRequests.toLocaleString('en-US')} requests, ${plans.length} plans, ${refused.length} refused, ${rss.toFixed(0)} MiB`,
    );
    const [best] = plans;
    if (best !== undefined) {
      console.log(
        `  cheapest: ${best.engines} x ${best.profile.name} ${best.settings.weights}, ${best.usdPerHour.toFixed(2)} USD an hour, at least ${best.lowerBoundUsdPerHour.toFixed(2)}`,
      );
      const of = (isOne: (plan: (typeof plans)[number]) => boolean) => plans.filter(isOne).length;
      console.log(
        `  prefill apart: ${of(({ pools }) => pools[0].role !== 'all')}, routed by prefix: ${of(({ router }) => router === 'prefix_aware')}, two kinds of GPU: ${of(({ pools }) => pools[0].profile !== pools.at(-1)!.profile)} of ${mixedTried} tried`,
      );
    }
  }
} finally {
  await jobs.close();
}
