import { existsSync } from 'node:fs';
import { join } from 'node:path';
import {
  type Deployment,
  type Launch,
  parseSlo,
  readLaunch,
  resolveLaunch,
  resolvePlan,
  type SloTerm,
} from '@servegym/operators';
import {
  estimatedProfile,
  parsePrices,
  priceOf,
  profileFromTables,
  type ServedModel,
  withDraftHead,
} from '@servegym/profiles';
import type { EngineProfile } from '@servegym/simulator';
import type { OptionTable } from '../command-table.ts';
import { InputError } from '../failure.ts';
import { parseInputJson, readGpu, readInputFile, readModel, readProfile } from '../files.ts';

/** `--gpu` and `--profile`: where a deployment runs, in commands that take one. */
export const hardwareOptions = {
  gpu: { value: '<name>', help: 'GPU of the deployment, a part of its name: h100' },
  profile: { value: '<name|file.json>', help: 'engine profile, instead of one for the model and --gpu' },
} as const satisfies OptionTable;

/** A deployment of a command that takes one. */
export const deploymentOptions = {
  deployment: {
    value: '<line|file>',
    help: 'your `vllm serve` or SGLang line, or a file: with one, a Kubernetes manifest, Helm values, JSON of `plan`; with --profile also bare flags',
  },
  ...hardwareOptions,
} as const satisfies OptionTable;

/** Settings of an engine whose profile is named, and no line that starts it. */
const BARE = { maxNumSeqs: 256, maxNumBatchedTokens: 2048 };

/** A line, or the content of a file with one; bare flags get the start of a line. */
async function contentOf(text: string, option: string): Promise<{ content: string; name: string }> {
  if (text.trimStart().startsWith('-')) return { content: `vllm serve ./own ${text}`, name: option };
  if (existsSync(text)) return { content: await readInputFile(text), name: text };
  if (!/\s/.test(text.trim())) throw new InputError(`--${option}: there is no file ${text}`);
  return { content: text, name: option };
}

/** Settings that a line, a file or bare flags name, of a server that is measured. @throws InputError or TuningError */
export async function readLaunchText(text: string | undefined): Promise<Launch | undefined> {
  if (text === undefined) return undefined;
  const { content, name } = await contentOf(text, 'deployment');
  return readLaunch(content, name);
}

/**
 * The deployment in a line, a file or bare flags; without a text, the profile's engine with its defaults.
 * @param options.name Name of a line in messages.
 * @throws InputError or TuningError
 */
export async function readDeployment(
  text: string | undefined,
  options: {
    readonly name?: string;
    readonly gpu?: string | undefined;
    readonly profile?: string | undefined;
    /** Folder of kernel tables, for a line of SGLang, and one that names a version. */
    readonly tables?: string | undefined;
  },
): Promise<Deployment> {
  const { gpu, tables, name: option = 'deployment' } = options;
  const profile = options.profile === undefined ? undefined : await readProfile(options.profile);
  const isBare = isBareFlags(text);
  if (isBare && profile === undefined)
    throw new InputError(
      `--${option}: expected a \`vllm serve\` or SGLang line, or a file with one, and --gpu; or a --profile (\`servegym profile list\`)`,
    );
  const { content, name } = await contentOf(text ?? '-', option);
  if (content.trimStart().startsWith('{')) {
    const named = async (each: string): Promise<EngineProfile> => profile ?? readProfile(each);
    return resolvePlan(Object(parseInputJson(content, name)), name, named);
  }
  const launch = readLaunch(text === undefined ? 'vllm serve ./own' : content, name);
  const { version } = launch;
  if (profile && version && !`${profile.engine.version}.`.startsWith(`${version}.`))
    throw new InputError(
      `${name}: expected a profile of version ${version}, as the line says, got ${profile.name} of ${profile.engine.version}`,
    );
  const made = profile === undefined ? await profileOf(launch, { gpu, tables }) : undefined;
  const launched = resolveLaunch(launch, {
    ...{ name, profile: made?.profile ?? profile, gpu, model: made?.model },
    ...(isBare && { defaults: BARE }),
  });
  // A draft in a folder is as its config.json says.
  const folder = launch.settings.draft?.model;
  const head = folder === undefined ? undefined : join(folder, 'config.json');
  const drafted =
    head !== undefined && existsSync(head)
      ? withDraftHead(launched.profile, await readInputFile(head), head, made?.model)
      : launched.profile;
  const resolved = { ...launched, profile: drafted };
  if (made === undefined) return resolved;
  const { evidence, model } = made;
  return { ...resolved, evidence, maxModelLen: resolved.maxModelLen ?? model.contextTokens };
}

/** The part of a line that decides what runs on each GPU. */
export function divisionOf(settings: Launch['settings']) {
  const { tensorParallel: tensor = 1, dataParallel: data = 1, pipelineParallel: pipeline = 1 } = settings;
  const { weights, expertParallel, fp8KvCache } = settings;
  return {
    parallel: { tensor, pipeline, data, expert: expertParallel ? tensor * data : 1 },
    weights,
    kvCache: fp8KvCache ? ('FP8' as const) : ('FP16' as const),
  };
}

/**
 * The profile of a line that none is shipped for: of SGLang or of a version, from kernel tables; or of a checkpoint in a
 * folder with a `config.json`, from these or from data sheets.
 */
async function profileOf(
  { model, checkpoint, version, settings, engine, source }: Launch,
  { gpu, tables }: { readonly gpu: string | undefined; readonly tables: string | undefined },
): Promise<Readonly<{ profile: EngineProfile; evidence: string; model: ServedModel }> | undefined> {
  const config = join(checkpoint, 'config.json');
  const isLocal = model === null && existsSync(config);
  const isShipped = version === undefined && engine === 'vLLM';
  if (tables === undefined ? version !== undefined || !isLocal : isShipped && !isLocal) return undefined;
  if (gpu === undefined) throw new InputError(`${source}: expected --gpu, the GPU that it runs on`);
  const division = divisionOf(settings);
  const found = await readGpu(gpu);
  const served = isLocal || model === null ? await readModel(isLocal ? config : checkpoint) : model;
  if (tables === undefined) {
    const { tensor, data, pipeline } = division.parallel;
    const gpus = tensor * data * pipeline;
    const profile = estimatedProfile(found, served, gpus, undefined, division.kvCache);
    return { profile, evidence: `data sheets, and the shape in ${config}`, model: served };
  }
  const asked = engine.toLowerCase() + (version === undefined ? '' : `-${version}`);
  const hardware = { gpu: found, model: served, command: '' };
  const made = await profileFromTables(tables, asked, { ...hardware, ...division });
  if (made.isNewer)
    throw new InputError(
      `${source}: expected a version up to ${made.newest}, the newest that kernel times were measured with, got ${version}: measure a server of it, \`servegym profile make URL\``,
    );
  const { profile, versions, ownTime } = made;
  const evidence = `kernel tables ${versions.join(', ')}. The engine’s own time: ${ownTime}`;
  return { profile, evidence, model: served };
}

/** Settings of the engines of a deployment, as the simulator has them. */
export function servingConfig({ settings }: Deployment) {
  const { weights, kvBudgetFraction, speculationDepth, maxNumActiveSeqs, maxNumSeqs, priority } = settings;
  return {
    ...{ weights, kvBudgetFraction, speculationDepth, maxNumSeqs: maxNumActiveSeqs || maxNumSeqs },
    schedulingPolicy: priority ? ('priority' as const) : ('fcfs' as const),
  };
}

/** Whether a text has no line that starts an engine, so that a profile has to say what runs. */
export function isBareFlags(text: string | undefined): boolean {
  return text === undefined || text.trimStart().startsWith('-');
}

/** Bounds unless `--slo` says otherwise: a choice. */
const SLO = 'ttft_p99=1s,tpot_p99=50ms';
export const sloOption = {
  value: '<bounds>',
  parse: parseSlo,
  default: parseSlo(SLO),
  defaultText: SLO,
  help: 'percentiles or means of ttft, tpot and e2e',
} as const;

/** @throws InputError when a bound is of a priority class */
export function refuseClassBounds(slo: readonly SloTerm[], reason: string): void {
  if (slo.some(({ priorityClass }) => priorityClass !== undefined))
    throw new InputError(`--slo: expected bounds of all requests, as ${reason} no priority classes`);
}

/** What a GPU costs. */
export const priceOptions = {
  prices: { value: '<file.json>', env: 'SERVEGYM_PRICES', help: 'your USD an hour, as {"H100-80GB": 2.5}' },
  spot: { help: 'prices of capacity that the provider may take back' },
} as const satisfies OptionTable;

/**
 * Profiles with the prices of today: of `--prices`, else the table's for a shipped profile and its own for one of a
 * file. `note` says what each costs and who says so, and whose schedules are not exact.
 */
export async function withPrices(
  profiles: readonly EngineProfile[],
  { prices, spot = false }: { readonly prices?: string | undefined; readonly spot?: boolean },
  isShipped: (index: number) => boolean = () => true,
): Promise<{ readonly profiles: EngineProfile[]; readonly note: string }> {
  const own = prices === undefined ? new Map() : parsePrices(await readInputFile(prices), prices);
  const notes = new Map<string, string>();
  const priced = profiles.map((profile, i) => {
    const { gpu } = profile;
    const found = priceOf(gpu.name, { own, isSpot: spot, useTable: isShipped(i) || spot });
    if (found === undefined && spot)
      throw new InputError(`no spot price of ${gpu.name} is known: give yours in --prices instead of --spot`);
    const { usdPerHour, source } = found ?? { ...gpu, source: `the profile ${profile.name}` };
    const price =
      usdPerHour === 0
        ? 'no price known, costs count as 0; --prices gives one'
        : `${usdPerHour} USD an hour (${source})`;
    notes.set(gpu.name, `${gpu.name}: ${price}`);
    return { ...profile, gpu: { ...gpu, usdPerHour } };
  });
  return { profiles: priced, note: [...notes.values()].join('\n') };
}
