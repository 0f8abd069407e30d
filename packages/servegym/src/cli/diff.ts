import { existsSync } from 'node:fs';
import {
  adapterNotes,
  blocksOf,
  compareDeployments,
  compareMeasured,
  type Deployment,
  diffResult,
  longestRequest,
  requestsWithin,
  traceWithin,
  withAdapters,
} from '@servegym/operators';
import { type MeasuredLoad, parseBenchResult } from '@servegym/profiles';
import { scaleRate, takeRequests } from '@servegym/simulator';
import {
  hardwareOptions,
  priceOptions,
  readDeployment,
  refuseClassBounds,
  sloOption,
  withPrices,
} from './arguments/deployment.ts';
import { whole } from './arguments/options.ts';
import { openArrivals, trafficOptions, trafficWord } from './arguments/traffic.ts';
import { defineCommand, type OptionTable, type OptionValues } from './command-table.ts';
import { InputError } from './failure.ts';
import { readInputFile, writeOutputFile } from './files.ts';
import { printResult } from './output/print-result.ts';

const options = {
  baseline: {
    value: '<line|file>',
    required: true,
    help: 'how it is served now: a `vllm serve` or SGLang line, or a file with one, a Kubernetes manifest, Helm values, or JSON of `plan`',
  },
  candidate: { value: '<line|file>', required: true, help: 'the same after the change' },
  ...hardwareOptions,
  tables: {
    value: '<folder>',
    help: 'unpacked aiconfigurator-core: its kernel times give the profiles of lines such as `vllm@0.12 serve ...`',
  },
  slo: sloOption,
  ...priceOptions,
  rateScale: trafficOptions.rateScale,
  requests: whole('<n>', 200, 1_000_000, 'most requests, from the start of the traffic', 20_000),
  seed: trafficOptions.seed,
  markdown: { value: '<file.md>', writes: true, help: 'write the table for a comment on a pull request' },
  json: { help: 'print one JSON object' },
} as const satisfies OptionTable;
type Values = Omit<OptionValues<typeof options>, 'baseline' | 'candidate'>;

export const diffCommand = () =>
  defineCommand({
    words: { traffic: { ...trafficWord.traffic, value: '[traffic]' } },
    options,
    after: `Exit status: 0 no bound of the SLO breaks; 1 the candidate breaks one, or makes a broken one worse;
3 too close to tell.

Examples:
  servegym diff log.csv --gpu h100 --baseline 'vllm serve Qwen/Qwen3-32B -tp 2' --candidate candidate.sh
  servegym diff log.csv --gpu h100 --baseline main/deployment.yaml --candidate deployment.yaml
  servegym diff --baseline round-robin.jsonl --candidate cache-aware.jsonl   # what was measured`,
    async action({ traffic, baseline, candidate, ...values }) {
      const { json, slo, seed } = values;
      refuseClassBounds(slo, 'the traffic of a diff has');
      if (traffic === undefined) {
        const [before, after] = [await measured(baseline), await measured(candidate)];
        return answer(compareMeasured(before, after, slo, seed), values);
      }
      const before = await priced('baseline', baseline, values);
      const after = await priced('candidate', candidate, values);
      if (before.version !== after.version && before.evidence && before.evidence === after.evidence)
        throw new InputError(
          `expected versions that something was measured of, got ${before.version} and ${after.version}, which rest on the same: ${before.evidence} Measure a server of each: servegym profile make URL`,
        );
      const trace = await openArrivals(traffic, { seed, quiet: json });
      const named = withAdapters(withAdapters(trace, before), after);
      const taken = scaleRate(takeRequests(named, values.requests), values.rateScale);
      const limits = [before, after].map(longestRequest);
      const both = [before, after].map((each, i) => {
        const { refused } = requestsWithin(taken, limits[i]);
        const notSimulated = [...each.notSimulated, ...adapterNotes(taken, each)];
        return { ...each, notSimulated, ...(refused.requests > 0 && { refused }) };
      });
      const { trace: common } = traceWithin(taken, Math.min(...limits));
      return answer(compareDeployments(both[0], both[1], blocksOf(common), slo, seed), values);
    },
  });

async function answer(result: Parameters<typeof diffResult.answer>[0], { json, markdown }: Values) {
  printResult(json, result, diffResult);
  if (markdown !== undefined) await writeOutputFile(markdown, [`${diffResult.markdown(result)}\n`]);
  return diffResult.answer(result);
}

/** A load that a load generator measured. @throws InputError */
async function measured(file: string): Promise<MeasuredLoad> {
  if (!existsSync(file))
    throw new InputError(
      `expected a traffic, or a measured result on both sides (of \`profile confirm --output\`, vllm bench serve or GuideLLM), got ${file}`,
    );
  const loads = parseBenchResult(await readInputFile(file), file);
  if (loads.length === 1) return loads[0];
  throw new InputError(`${file}: expected one load, got ${loads.length}`);
}

/** A deployment on GPUs at the prices of today. */
async function priced(name: string, text: string, values: Values): Promise<Deployment> {
  const found = await readDeployment(text, { ...values, name });
  const { profiles } = await withPrices([found.profile], values, () => !values.profile?.endsWith('.json'));
  return { ...found, profile: profiles[0] };
}
