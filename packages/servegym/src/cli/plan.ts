import {
  ASSUMPTIONS,
  adapterNotes,
  type FleetPlan,
  longestRequest,
  PLAN_SPACE,
  planFleet,
  planResult,
  profileSpace,
  profilesOnGpu,
  rankPlans,
  refusedText,
  splitTrace,
  TUNE_SPACE,
  traceWithin,
} from '@servegym/operators';
import {
  estimatedProfile,
  GPUS,
  type Gpu,
  knownCheckpoint,
  listProfiles,
  profilesOf,
  type ServedModel,
} from '@servegym/profiles';
import { type EngineProfile, scaleRate } from '@servegym/simulator';
import { InvalidArgumentError } from 'commander';
import { priceOptions, refuseClassBounds, sloOption, withPrices } from './arguments/deployment.ts';
import { whole } from './arguments/options.ts';
import { openRecord, readSearchSpace, searchOptions } from './arguments/search.ts';
import { openArrivals, trafficOptions, trafficWord } from './arguments/traffic.ts';
import { defineCommand, type OptionTable, type OptionValues } from './command-table.ts';
import { InputError } from './failure.ts';
import { readModel, writeOutputFile } from './files.ts';
import { jobOptions, withJobs } from './jobs.ts';
import { printResult } from './output/print-result.ts';
import { showProgress, untilDone } from './output/progress.ts';
import { reportPage } from './output/report-page.ts';

const options = {
  model: {
    value: '<name|file.json>',
    required: true,
    help: 'the model to serve, or a part of its name: qwen3-32b; or its config.json',
  },
  slo: sloOption,
  gpus: {
    value: '<names>',
    parse: (text: string) => (text === 'all' ? [] : text.split(',').map((name) => name.trim())),
    default: [] as string[],
    defaultText: 'all',
    help: 'GPUs to choose from, parts of their names: h100,l40s',
  },
  allow: {
    value: '<names>',
    parse: parseAllow,
    default: [] as string[],
    defaultText: 'none',
    help: `what may be taken for granted beside measurements: drafts, estimated (profiles from data sheets), and weights such as fp8`,
  },
  ...searchOptions,
  maxEngines: whole('<n>', 1, 256, 'most engines of a plan', 64),
  ...priceOptions,
  rateScale: trafficOptions.rateScale,
  requests: whole('<n>', 400, 1_000_000, 'requests that are simulated, evenly over the traffic', 8000),
  seed: trafficOptions.seed,
  report: { value: '<file.html>', writes: true, help: 'write the plans as a page' },
  json: { help: 'print one JSON object' },
  ...jobOptions,
} as const satisfies OptionTable;

/** Values of settings of an engine that a plan may search; `replicas` and classes it does not know. */
const { replicas: _, priority: __, ...SETTINGS } = TUNE_SPACE;
const KNOWN = { ...SETTINGS, ...PLAN_SPACE };

export const planCommand = () =>
  defineCommand({
    words: trafficWord,
    options,
    after: `Examples:
  servegym plan log.csv --model qwen3-32b --slo ttft_p99=1s,tpot_p99=50ms
  servegym plan log.parquet --model llama-3-70b --gpus h100,h200 --spot --report plan.html
  servegym plan 2048:256@12/s --model llama-3-8b --allow drafts,fp8,estimated`,
    async action({ traffic, ...values }) {
      const { json, report, slo, seed } = values;
      refuseClassBounds(slo, 'a plan knows');
      const ownModel = values.model.endsWith('.json') ? await readModel(values.model) : undefined;
      const chosen = chosenProfiles(values, ownModel);
      const own = profileSpace(chosen);
      const space = await readSearchSpace(values.search, { ...own, ...PLAN_SPACE }, { ...own, ...KNOWN });
      if (space === undefined) return 'yes';
      const record = await openRecord(values);
      const opened = scaleRate(await openArrivals(traffic, { seed, quiet: json }), values.rateScale);
      // All are of one model.
      const limit = ownModel?.contextTokens ?? longestRequest({ profile: chosen[0] });
      const { trace, refused } = traceWithin(opened, limit);
      if (refused.requests > 0) console.error(refusedText(refused));
      for (const left of adapterNotes(trace, { profile: chosen[0] })) console.error(`not simulated: ${left}`);
      const { profiles, note } = await withPrices(chosen, values);
      if (!json) console.error(note);
      const planned = { trace, refused, split: splitTrace(trace, values.requests) };
      const plans: FleetPlan[] = [];
      const sized = { done: 0, of: 0 };
      const best = { text: '' };
      const planning = withJobs(values, (jobs) =>
        planFleet(jobs, profiles, planned, {
          ...{ slo, minQuality: values.quality, mostEngines: values.maxEngines, seed, allow: values.allow },
          record,
          ...(values.search !== undefined && { space }),
          onSearch({ stage, share, best: found, rate, correlation }) {
            if (found !== null && plans.length === 0)
              best.text = `; best so far about ${found.engines} x ${found.profile}, ${found.weights}`;
            const agreed = correlation === null ? '' : `, rank correlation ${correlation.toFixed(2)}`;
            const speed = `${rate.toFixed(0)} simulations/s${agreed}`;
            showProgress(`${stage} ${Math.round(100 * share)} %, ${speed}${best.text}`);
          },
          onProgress: (done, of) => {
            Object.assign(sized, { done, of });
            const [cheapest] = rankPlans(plans, values.allow).plans;
            if (cheapest !== undefined)
              best.text = `; best so far ${cheapest.usdPerHour.toFixed(2)} USD an hour: ${cheapest.engines} x ${cheapest.profile.name}`;
            showProgress(`${done} of ${of} kinds of engines${best.text}`);
          },
          onPlans: (found) => plans.push(...found),
        }),
      );
      const result = await untilDone(planning, () =>
        plans.length === 0 || json
          ? undefined
          : planResult.textSoFar(rankPlans(plans, values.allow), sized.done, sized.of),
      );
      printResult(json, result, planResult);
      if (report !== undefined) await writeOutputFile(report, [reportPage(planResult.page(result))]);
      return result.plans.length > 0 ? 'yes' : 'no';
    },
  });

/** Profiles of a model on the GPUs asked for: shipped ones, or estimates for a config.json. @throws InputError with those there are */
function chosenProfiles({ model, gpus, allow }: OptionValues<typeof options>, own: ServedModel | undefined) {
  if (own !== undefined && !allow.includes('estimated'))
    throw new InputError(
      `--model ${model}: nothing was measured with it; allow profiles from data sheets with --allow estimated, or measure a server with it (servegym profile make URL) and tune that profile`,
    );
  const plain = (words: string) => words.toLowerCase().replace(/^.*\/|[\s_-]/g, '');
  const all = own === undefined ? listProfiles() : GPUS.flatMap((gpu) => estimatesOf(gpu, own));
  const called = own === undefined ? knownCheckpoint(model)?.model : undefined;
  const named = called === undefined ? [] : profilesOf(called);
  const wanted = plain(own?.name ?? model);
  const ofModel =
    named.length > 0 ? named : all.filter(({ model: { name } }) => plain(name).includes(wanted));
  const namesIn = (profiles: readonly EngineProfile[]) =>
    [...new Set(profiles.map((profile) => profile.model.name))].sort().join(', ');
  const models = new Set(ofModel.map((profile) => profile.model.name));
  if (models.size !== 1)
    throw new InputError(
      `--model: expected the config.json of a model, or one of ${namesIn(models.size > 0 ? ofModel : all)}, got ${model}`,
    );
  const onGpus = gpus.length === 0 ? ofModel : gpus.flatMap((gpu) => profilesOnGpu(ofModel, gpu));
  if (onGpus.length > 0) return [...new Set(onGpus)];
  const known = [...new Set(ofModel.map(({ gpu }) => gpu.name))].sort();
  throw new InputError(
    `no profile of ${namesIn(ofModel)} is on ${gpus.join(', ')}: there are ${known.join(', ')}`,
  );
}

/** Estimates on the two smallest groups of GPUs with a price that hold the model. */
function estimatesOf(gpu: Gpu, model: ServedModel): EngineProfile[] {
  const held = [1, 2, 4, 8].flatMap((count) => {
    try {
      return estimatedProfile(gpu, model, count);
    } catch {
      return [];
    }
  });
  return gpu.usdPerHour === 0 ? [] : held.slice(0, 2);
}

function parseAllow(text: string): string[] {
  const names = text.split(',').map((name) => name.trim().toLowerCase());
  const unknown = names.find((name) => !ASSUMPTIONS.includes(name));
  if (unknown === undefined) return names;
  throw new InvalidArgumentError(`Expected some of ${ASSUMPTIONS.join(', ')}, got \`${unknown}\`.`);
}
