import { resolve } from 'node:path';
import { drawWorkload, publicWorkload } from '@servegym/environments';
import { findReferenceFiles, REFERENCE_DATA, readTrace } from '@servegym/operators/traces';
import { findProfile } from '@servegym/profiles';
import {
  type EngineProfile,
  type ReplicaView,
  repeatTrace,
  type SimulationOptions,
  type SimulationRun,
  scaleRate,
  simulateTrace,
  type Trace,
} from '@servegym/simulator';
import { benchmark, median, text, timed } from '../harness.ts';

export default benchmark({
  what: "Simulated requests a second of wall time on a trace repeated to many requests, in one process on one core: the Azure conversation trace of `--data FOLDER` (docs/reference-data.md), `--trace FILE`, or an hour drawn from that trace's traffic model. The scenarios take turns; the median and the best of the runs. `--beside FOLDER` simulates the same in turns with the simulator of another checkout: above 1, ours takes less processor time.",
  options: {
    ...{ trace: text, data: text, profile: 'a100-40gb-llama-3-8b' },
    ...{ requests: 200_000, runs: 7, beside: text },
  },
  async *run({ trace: file, data, profile: name, requests, runs, beside }) {
    const recorded = repeatTrace(await chosenTrace(file, data), requests);
    const other: Pick<typeof import('@servegym/simulator'), 'simulateTrace'> | undefined =
      beside && (await import(resolve(beside, 'packages/simulator/src/index.ts')));
    const scenarios: readonly { name: string; trace: Trace; options?: Partial<SimulationOptions> }[] = [
      { name: 'as recorded', trace: recorded },
      { name: 'half the rate', trace: scaleRate(recorded, 0.5) },
      { name: 'overload: three times the rate', trace: scaleRate(recorded, 3) },
      { name: 'KV pressure: 2,000 blocks', trace: recorded, options: { kvBlocks: 2000 } },
      { name: 'without prefix caching', trace: recorded, options: { prefixCaching: false } },
      { name: 'speculation depth 3', trace: recorded, options: { speculationDepth: 3 } },
      { name: '4 replicas in turns', trace: recorded, options: { replicas: 4 } },
      {
        name: '4 replicas by `least_loaded`',
        trace: recorded,
        options: { replicas: 4, router: 'least_loaded' },
      },
      { name: '4 replicas by `score`', trace: recorded, options: { replicas: 4, policy: { score } } },
      // The same law, requests and KV bytes a token: beside `as recorded`, what the groups cost.
      ...['gpt-oss-20b', 'gemma-3-27b'].map((model) => ({
        name: `KV groups of ${model}`,
        trace: recorded,
        options: { profile: withGroups(findProfile(name), model) },
      })),
    ];
    const profile = findProfile(name);
    const times = scenarios.map(() => ({
      wallS: [] as number[],
      cpuS: [] as number[],
      othersCpuS: [] as number[],
    }));
    const counters: SimulationRun['counters'][] = [];
    // In turns, so that a machine that slows down slows all. The first round warms up the compiler.
    for (let run = 0; run <= runs; run++) {
      for (const [
        i,
        {
          trace: { prefixBlocks, ...trace },
          options,
        },
      ] of scenarios.entries()) {
        // A copy, so that nothing is known of the hashes from the run before.
        const fresh = { ...trace, prefixBlocks: prefixBlocks && { ...prefixBlocks } };
        const ours = await timed(() => simulateTrace(fresh, { profile, ...options }));
        const theirs = other && (await timed(() => other.simulateTrace(fresh, { profile, ...options })));
        counters[i] = ours.result.counters;
        if (run === 0) continue;
        times[i].wallS.push(ours.wallS);
        times[i].cpuS.push(ours.cpuS);
        if (theirs) times[i].othersCpuS.push(theirs.cpuS);
      }
    }
    for (const [i, { name, trace }] of scenarios.entries()) {
      const { wallS, cpuS, othersCpuS } = times[i];
      const { cachedTokens, prefillTokens, preemptions } = counters[i];
      const rate = (seconds: number) => Math.round(trace.arrivalMs.length / seconds);
      yield {
        ...{ scenario: name, requests: trace.arrivalMs.length },
        ...{ 'requests/s': rate(median(wallS)), best: rate(Math.min(...wallS)) },
        ...{ 'by processor time': rate(median(cpuS)), preemptions },
        'cached %': (100 * cachedTokens) / (cachedTokens + prefillTokens),
        ...(other && { 'processor time of the other over ours': median(othersCpuS) / median(cpuS) }),
      };
    }
  },
});

/** A profile with the KV groups of another model on the same GPU memory. */
function withGroups(profile: EngineProfile, model: string): EngineProfile {
  const { attention } = findProfile(`h100-80gb-${model}`).model.kvGroups!;
  const bytesPerToken = profile.model.kvBytesPerToken / attention.length;
  return { ...profile, model: { ...profile.model, kvGroups: { bytesPerToken, attention } } };
}

/** A policy that is asked for each request and replica. */
const score = (_: unknown, replica: ReplicaView) => -replica.requests_in_flight;

async function chosenTrace(trace: string | undefined, data: string | undefined): Promise<Trace> {
  const [published] = data === undefined ? [] : findReferenceFiles(data, [REFERENCE_DATA.azureConversation]);
  const file = trace ?? published;
  if (file !== undefined) return (await readTrace(file)).trace;
  const model = publicWorkload('azure-conversation-2023');
  const { arrivalSeconds, inputTokens, outputTokens } = drawWorkload(model, 0, model.seconds);
  return {
    source: model.id,
    arrivalMs: Float64Array.from(arrivalSeconds, (at) => 1000 * (at - arrivalSeconds[0])),
    inputTokens: Int32Array.from(inputTokens),
    outputTokens: Int32Array.from(outputTokens),
  };
}
