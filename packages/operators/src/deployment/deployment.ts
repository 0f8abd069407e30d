import {
  GPUS,
  knownCheckpoint,
  loraGiB,
  profilesOf,
  rescheduled,
  type ServedModel,
} from '@servegym/profiles';
import {
  counted,
  type EngineProfile,
  pickRequests,
  ROUTER_POLICIES,
  type RouterPolicy,
  type Trace,
  VLLM_FRONT_END,
} from '@servegym/simulator';
import { linesIf } from '../report/format.ts';
import {
  type Candidate,
  FLAG_KNOBS,
  fewestEngines,
  HOST_GBPS,
  KNOB_NAMES,
  type KnobName,
  vllmDefaults,
} from '../search/candidate.ts';
import { SETTINGS } from '../search/search-space.ts';
import { TuningError } from '../search/slo.ts';
import { type EngineName, type LaunchSettings, named, SCHEDULER_FLAGS } from './engine-flags.ts';
import { invalidLaunch, type Launch } from './launch.ts';
import { sglangDefaults, withSglangDrafts, withTree } from './sglang.ts';

/** How a model is served: engines with their settings, on named GPUs. */
export interface Deployment {
  readonly name: string;
  /** Profile of an engine that was started with the flags of the scheduler, the front end and the host's memory. */
  readonly profile: EngineProfile;
  readonly settings: Candidate;
  readonly engines: number;
  /** Routing to them. Default `least_loaded`. */
  readonly router?: RouterPolicy;
  /** KV blocks of an engine, instead of what its memory holds. */
  readonly kvBlocks?: number;
  /** Longest request that an engine takes, tokens. */
  readonly maxModelLen?: number;
  /** Adapters that its command line names, if it does, and names of the base model. */
  readonly adapters?: { readonly modules?: readonly string[]; readonly base: readonly string[] };
  /** Requests of the traffic that are too long for it. */
  readonly refused?: RefusedRequests;
  /** Settings of its command line that the simulation does not have. */
  readonly notSimulated: readonly string[];
  /** Engine that its command line starts, and the version where it names one. A shipped profile may be of the other engine. */
  readonly engine?: EngineName;
  readonly version?: string;
  /** Source of its times, where no shipped profile and no file has them. */
  readonly evidence?: string;
}

/**
 * The deployment that a command line starts.
 * @param profile Instead of the shipped one for the model on `gpu`, a GPU's name or a part of it.
 * @param defaults Settings that the line does not name. Default: those of vLLM on the GPU.
 * @throws TuningError `INVALID_LAUNCH`
 */
export function resolveLaunch(
  launch: Launch,
  options: {
    readonly name?: string;
    readonly profile?: EngineProfile;
    readonly gpu?: string;
    /** Model of a checkpoint in a folder. */
    readonly model?: ServedModel;
    readonly defaults?: Partial<Candidate>;
  } = {},
): Deployment {
  const { name = launch.source, profile: own, gpu } = options;
  const { replicas, engine, version } = launch;
  if (own === undefined && version !== undefined)
    throw invalidLaunch(
      launch.source,
      `a shipped profile is of one version of vLLM. Compare versions on kernel times, \`servegym diff --tables aiconfigurator_core\`, or make a profile of ${version}, \`servegym profile make aiconfigurator_core --engine vllm-${version} --gpu h100-80gb --model llama-3-8b --output vllm-${version}.json\`, and name it with --profile`,
    );
  // Replicas that the profile does not have are engines.
  const engines = (own?.parallel?.data ?? 1) > 1 ? 1 : (launch.settings.dataParallel ?? 1);
  const found = own === undefined ? profileFor(launch, gpu) : { profile: own, engines, notSimulated: [] };
  const settings = engine === 'SGLang' ? withSglangDrafts(launch.settings, found.profile) : launch.settings;
  const { memoryShare, ...ofEngine } =
    engine === 'SGLang' ? sglangDefaults(settings, found.profile) : { memoryShare: undefined };
  // A profile measured on SGLang knows how much memory it takes.
  const { engine: of, weights } = found.profile;
  const isKnown = of.name === 'SGLang' && Object.values(weights).some(({ status }) => status === 'measured');
  const shared = isKnown ? settings : { memoryShare, ...settings };
  const model = options.model ?? launch.model ?? knownCheckpoint(found.profile.model.name)?.model;
  const started = startedProfile(found.profile, { ...launch, settings: shared });
  const { memory } = started;
  const lora = loraOf(launch);
  // vLLM holds the room for adapters from its start.
  const adapterGiB = lora && model && loraGiB(model.shape, lora, started);
  const overheadGiB = memory.overheadGiB + (adapterGiB ?? 0);
  const profile = { ...started, engine: { ...started.engine, ...lora }, memory: { ...memory, overheadGiB } };
  const chosen = { ...vllmDefaults(profile), ...ofEngine, ...options.defaults };
  const { maxModelLen, kvBlocks, role } = settings;
  const defaults = { ...chosen, maxNumBatchedTokens: leastBudget(launch, profile, chosen) };
  return checked({
    ...{ name, profile, engine, version, engines: replicas * found.engines, maxModelLen, kvBlocks },
    ...(found.engines > 1 && { router: 'least_loaded' as const }),
    adapters: {
      modules: settings.loraModules,
      base: [launch.checkpoint, ...(settings.servedModelNames ?? [])],
    },
    notSimulated: [
      ...launch.notSimulated,
      ...(role === undefined
        ? []
        : [role === 'both' ? '--kv-transfer-config' : `--disaggregation-mode ${role}`]),
      ...found.notSimulated,
      ...draftAcceptance(settings, profile),
      ...linesIf(
        /deepseek.?v4/i.test(launch.checkpoint),
        'the KV groups of DeepSeek-V4, with blocks of several sizes: one pool has the mean of its layers',
      ),
      ...linesIf(found.engines > 1, BALANCED_AT_ONCE),
      ...linesIf((profile.parallel?.data ?? 1) > 1, RANKS_TOGETHER),
      ...linesIf(lora !== undefined, SLOWER_WITH_LORA),
      ...linesIf(
        lora !== undefined && adapterGiB === undefined,
        `the memory of LoRA adapters: the shape of ${launch.checkpoint} is not known, or has layers that are not computed`,
      ),
      ...linesIf(
        engine === 'SGLang',
        'SGLang’s scheduler: vLLM’s is simulated with its settings, and prefills come first without --enable-mixed-chunk',
      ),
    ],
    settings: {
      ...defaults,
      maxNumBatchedTokens: Math.max(defaults.maxNumBatchedTokens, settings.maxNumSeqs ?? 0),
      ...named(settings, FLAG_KNOBS),
    },
  });
}

const BALANCED_AT_ONCE =
  'the balancer of --data-parallel-size: a request goes to the engine with the fewest, counted at once; vLLM counts up to 100 ms late, and those that wait more where much KV is in use';
const RANKS_TOGETHER =
  'the ranks of --data-parallel-size: they are one engine with one queue, which has the KV and the --max-num-seqs of all together';
/** Published slowdowns; they are not alike enough for a law. */
const SLOWER_WITH_LORA =
  'slower kernels with LoRA, and loading adapters: iterations take the time of the base model. Measured with adapters: 66 % of its output tokens/s (Llama-2-7B on A100, rank 8, vLLM of 2024, github.com/vllm-project/vllm/pull/11267), 70 to 79 % (Qwen3.5-35B-A3B, four adapters, SGLang of 2026, github.com/sgl-project/sglang/pull/28091). Measure a server with its adapters: servegym profile make URL';

/** The room for adapters that a line asks for. @throws TuningError as vLLM does */
function loraOf({ settings, source }: Launch) {
  const { lora = false, maxLoras, maxLoraRank = 16, maxCpuLoras, loraModules } = settings;
  const isNamed = maxLoras ?? settings.maxLoraRank ?? maxCpuLoras ?? loraModules;
  if (!lora && isNamed !== undefined)
    throw invalidLaunch(source, 'expected --enable-lora beside flags of adapters, which need it');
  if ((maxCpuLoras ?? Number.POSITIVE_INFINITY) < (maxLoras ?? 1))
    throw invalidLaunch(
      source,
      `expected --max-cpu-loras of at least --max-loras ${maxLoras}, got ${maxCpuLoras}`,
    );
  return lora ? { maxLoras: maxLoras ?? 1, maxLoraRank } : undefined;
}

/**
 * The trace as a deployment serves it: requests that name its model are of the base model.
 * @throws TuningError for an adapter that is not among those that its line names
 */
export function withAdapters(trace: Trace, { name = '', adapters: known }: Partial<Deployment>): Trace {
  const { adapters } = trace;
  if (adapters === undefined || known === undefined) return trace;
  const { modules = adapters.names, base } = known;
  const foreign = adapters.names.find((each) => !modules.includes(each) && !base.includes(each));
  if (foreign !== undefined)
    throw invalidLaunch(
      name,
      `expected traffic with adapters that --lora-modules names (${modules.join(', ')}), got ${foreign} in ${trace.source}`,
    );
  const of = adapters.of.map((at) => (base.includes(adapters.names[at - 1]) ? 0 : at));
  return { ...trace, adapters: { ...adapters, of } };
}

/** What of the adapters of a trace is not served. */
export function adapterNotes({ adapters }: Trace, { profile }: Pick<Deployment, 'profile'>) {
  const isUnserved = !profile.engine.maxLoras && (adapters?.of.some((at) => at > 0) ?? false);
  return linesIf(isUnserved, 'the adapters of the traffic, without --enable-lora: all is of the base model');
}

/** Nobody has published how many drafts of each head are accepted. */
function draftAcceptance({ draft }: LaunchSettings, { model, speculation }: EngineProfile): string[] {
  const own = knownCheckpoint(model.name)?.model.draft;
  if (draft?.model === undefined || draft.model === own || speculation === null) return [];
  return [`the drafts of ${draft.model}: as many are accepted as of other heads`];
}

/** Profile of an engine that was started so. @throws TuningError for a flag that needs another */
function startedProfile(profile: EngineProfile, { engine: name, settings, source }: Launch): EngineProfile {
  const { memoryShare, kvOffloadingGiB, apiServerCount: processes, draft } = settings;
  const drafter = draft?.method === 'ngram' ? ('ngram' as const) : ('eagle' as const);
  const { asyncScheduling = profile.engine.asyncScheduling ?? false } = settings;
  // vLLM does not schedule the drafts of n-grams ahead, nor SGLang any (`disable_overlap_schedule`).
  const isAhead = asyncScheduling && draft?.method !== 'ngram' && !(name === 'SGLang' && draft);
  const { weights } = rescheduled(profile, isAhead);
  const engine = {
    ...profile.engine,
    ...named(settings, SCHEDULER_FLAGS),
    // SGLang mixes no chunks beside a draft.
    ...(name === 'SGLang' && { prefillFirst: draft !== undefined || (settings.prefillFirst ?? true) }),
    ...(draft?.method && { drafter }),
  };
  if (engine.longPrefillTokenThresholdAdaptive && !engine.longPrefillTokenThreshold) {
    throw invalidLaunch(
      source,
      'expected --long-prefill-token-threshold above 0 with --long-prefill-token-threshold-adaptive, which raises it',
    );
  }
  if (kvOffloadingGiB !== undefined && settings.prefixCaching === false)
    throw invalidLaunch(source, '--kv-offloading-size needs prefix caching, got --no-enable-prefix-caching');
  if (kvOffloadingGiB !== undefined && profile.model.kvGroups !== undefined) {
    throw invalidLaunch(
      source,
      `--kv-offloading-size is not simulated for ${profile.model.name}, whose layers attend within windows: leave it out`,
    );
  }
  const { frontEnd = VLLM_FRONT_END, memory, hostKv } = profile;
  const gigabytesPerSecond = hostKv?.gigabytesPerSecond ?? HOST_GBPS;
  return {
    ...profile,
    ...{ engine, weights },
    speculation: profile.speculation && withTree(profile.speculation, settings),
    ...(memoryShare !== undefined && {
      memory: { ...memory, ...(name === 'SGLang' && { overheadGiB: 0 }), utilization: memoryShare },
    }),
    ...(processes !== undefined && { frontEnd: { ...frontEnd, processes } }),
    ...(kvOffloadingGiB !== undefined && { hostKv: { sizeGiB: kvOffloadingGiB, gigabytesPerSecond } }),
  };
}

/** Token budget where none is named: without chunked prefill at least the longest request. @throws TuningError as vLLM does */
function leastBudget(
  { settings, source, model: name }: Launch,
  { engine, model }: EngineProfile,
  { maxNumBatchedTokens: budget }: Candidate,
): number {
  if (engine.chunkedPrefill !== false) return budget;
  const known = name ?? knownCheckpoint(model.name)?.model;
  const longest = settings.maxModelLen ?? known?.contextTokens ?? 0;
  const { maxNumBatchedTokens = Math.max(budget, longest) } = settings;
  if (maxNumBatchedTokens >= longest) return Math.max(budget, longest);
  throw invalidLaunch(
    source,
    `expected --max-num-batched-tokens of at least ${longest}, the ${settings.maxModelLen === undefined ? 'context of the model' : '--max-model-len'}, as vLLM does without chunked prefill, got ${maxNumBatchedTokens}`,
  );
}

/** A plan as `plan --json` prints it, or all of that command's plans, of which the first counts. */
type PlannedJson = { readonly plans?: readonly PlannedJson[] } & Readonly<
  Partial<Record<'profile' | 'settings' | 'engines' | 'router' | 'pools', unknown>>
>;

/**
 * The deployment in parsed JSON with `profile`, `settings` and `engines`.
 * @param profileNamed Finds the profile that the JSON names.
 * @throws TuningError `INVALID_LAUNCH`
 */
export async function resolvePlan(
  value: PlannedJson,
  name: string,
  profileNamed: (name: string) => Promise<EngineProfile>,
): Promise<Deployment> {
  const { profile: named, settings, engines = 1, router, pools } = value.plans?.[0] ?? value;
  if (typeof named !== 'string' || typeof settings !== 'object' || settings === null)
    throw invalidLaunch(name, 'expected {"profile": "...", "settings": {"max_num_seqs": ...}, "engines": 2}');
  // Earlier versions planned fleets of two kinds of GPU.
  if (Array.isArray(pools) && pools.some((pool) => pool.profile !== named))
    throw invalidLaunch(name, 'expected engines of one profile, as diff compares no mixed fleets');
  if (router !== undefined && !ROUTER_POLICIES.includes(router as RouterPolicy))
    throw invalidLaunch(
      name,
      `router: expected one of ${ROUTER_POLICIES.join(', ')}, got ${JSON.stringify(router)}`,
    );
  const profile = await profileNamed(named);
  const defaults = vllmDefaults(profile);
  const chosen = Object.entries(settings).map(([key, given]) => {
    const knob = KNOB_NAMES[key as KnobName];
    if (SETTINGS[key as KnobName]?.safeParse(given).success !== true) {
      throw invalidLaunch(
        name,
        `settings.${key}: expected one of ${Object.keys(KNOB_NAMES).join(', ')} with a value of its kind, got ${JSON.stringify(given)}`,
      );
    }
    return [knob, given];
  });
  if (!(Number.isInteger(engines) && (engines as number) > 0))
    throw invalidLaunch(name, `engines: expected a whole number above 0, got ${JSON.stringify(engines)}`);
  return checked({
    ...{ name, profile, settings: { ...defaults, ...Object.fromEntries(chosen) }, notSimulated: [] },
    ...{ engines: engines as number, router: router as RouterPolicy | undefined },
  });
}

/** @throws TuningError when the profile lacks the weights or a draft */
function checked(deployment: Deployment): Deployment {
  const { name, profile, settings, engines } = deployment;
  if (profile.weights[settings.weights] === undefined)
    throw invalidLaunch(
      name,
      `${profile.name} has no ${settings.weights} weights; it has ${Object.keys(profile.weights).join(', ')}`,
    );
  if (settings.speculationDepth > 0 && profile.speculation === null)
    throw invalidLaunch(name, `${profile.name} has no draft`);
  if (settings.maxNumActiveSeqs > settings.maxNumSeqs)
    throw invalidLaunch(
      name,
      `expected --max-num-active-seqs to be at most --max-num-seqs, which is ${settings.maxNumSeqs}, got ${settings.maxNumActiveSeqs}`,
    );
  const group = fewestEngines(settings);
  if (engines % group !== 0)
    throw invalidLaunch(
      name,
      `engines: expected a multiple of ${group}, as their split is ${settings.split}, got ${engines}`,
    );
  return deployment;
}

/** Longest request that engines take, tokens: `--max-model-len`, else the context of the model; `Infinity` where that is not known. */
export function longestRequest({
  profile,
  maxModelLen,
}: Pick<Deployment, 'profile' | 'maxModelLen'>): number {
  return maxModelLen ?? knownCheckpoint(profile.model.name)?.model.contextTokens ?? Number.POSITIVE_INFINITY;
}

/** Requests that engines refuse for their length. */
export interface RefusedRequests {
  readonly requests: number;
  /** Prompt and answer of the longest, tokens. */
  readonly longest: number;
  /** Most that is taken, tokens. */
  readonly limit: number;
}

/** The requests of a trace that fit in `limit` tokens, prompt and answer together, by index; the others are refused. */
export function requestsWithin({ inputTokens, outputTokens }: Trace, limit: number) {
  const tokens = inputTokens.map((input, i) => input + outputTokens[i]);
  const picked = Int32Array.from(tokens.keys()).filter((i) => tokens[i] <= limit);
  const longest = tokens.reduce((most, each) => Math.max(most, each), 0);
  return { picked, refused: { requests: tokens.length - picked.length, longest, limit } as RefusedRequests };
}

/** The same as a trace. @throws TuningError `TRACE_TOO_LONG` when none fits */
export function traceWithin(trace: Trace, limit: number) {
  const { picked, refused } = requestsWithin(trace, limit);
  if (picked.length === 0)
    throw new TuningError('TRACE_TOO_LONG', `${trace.source}: ${refusedText(refused)}: no request is left`);
  return { trace: refused.requests === 0 ? trace : pickRequests(trace, picked), refused };
}

export function refusedText({ requests, longest, limit }: RefusedRequests): string {
  const count = (value: number) => value.toLocaleString('en-US');
  return `${counted(requests, 'request')} ${requests === 1 ? 'is' : 'are'} refused, as the endpoint and vLLM do: longer than the context of ${count(limit)} tokens, prompt and answer together (the longest: ${count(longest)})`;
}

/**
 * Profiles on a GPU, by its name, the first words of it, or else a part of it: `l4` is L4-24GB and not L40S-48GB, `a100` both
 * sizes of it, `6000` RTX-PRO-6000-96GB, `rtx 4090` RTX4090-24GB.
 */
export function profilesOnGpu(profiles: readonly EngineProfile[], gpu: string): EngineProfile[] {
  const wanted = gpu
    .trim()
    .toLowerCase()
    .replace(/[\s_]+/g, '-');
  // Also those without such a profile: where there is none on L4, `l4` is not taken for a part of L40S.
  const names = [...GPUS, ...profiles.map((profile) => profile.gpu)].map(({ name }) => name.toLowerCase());
  const first = names.filter((name) => name === wanted || name.startsWith(`${wanted}-`));
  const plain = (name: string) => name.replaceAll('-', '');
  const meant = first.length > 0 ? first : names.filter((name) => plain(name).includes(plain(wanted)));
  return profiles.filter((profile) => meant.includes(profile.gpu.name.toLowerCase()));
}

/** The shipped profile of a launch's model, GPU and parallelism. @throws TuningError with those there are */
function profileFor(
  { model, checkpoint, settings, source }: Launch,
  gpu: string | undefined,
): Pick<Deployment, 'profile' | 'engines' | 'notSimulated'> {
  const make = (words: string) =>
    `make a profile: servegym profile make ${words} --gpu ${gpu ?? 'h100'} --output mine.json, and name it with --profile mine.json`;
  if (model === null)
    throw invalidLaunch(
      source,
      `the model ${checkpoint} is not known; name the folder with its config.json as the model, or ${make('--model config.json')}`,
    );
  const ofModel = profilesOf(model);
  const onGpu = gpu === undefined ? ofModel : profilesOnGpu(ofModel, gpu);
  const { tensorParallel: tensor = 1, dataParallel: data = 1, pipelineParallel: pipeline = 1 } = settings;
  const { expertParallel: expert = false, fp8KvCache = false } = settings;
  const divided = (profile: EngineProfile, replicas: number) =>
    profile.gpu.count === tensor * pipeline * replicas &&
    (profile.parallel?.data ?? 1) === replicas &&
    (profile.parallel?.pipeline ?? 1) === pipeline;
  const shared = onGpu.filter((profile) => divided(profile, data));
  // Replicas of a dense model share nothing: they are engines.
  const fitting = shared.length > 0 ? shared : onGpu.filter((profile) => divided(profile, 1));
  const names = [...new Set(fitting.map((profile) => profile.gpu.name))];
  if (names.length !== 1) {
    const known = [...new Set(ofModel.map(({ gpu: { name, count } }) => `${name} x ${count}`))].sort();
    const wanted = `${tensor}${pipeline > 1 ? ` x ${pipeline} stages` : ''} ${gpu ?? 'GPUs'}`;
    throw invalidLaunch(
      source,
      names.length === 0
        ? `no profile of ${model.name} on ${wanted}: there are ${known.join(', ')}. For another GPU or number of them ${make(`--model ${model.id}${tensor > 1 ? ` --deployment '-tp ${tensor}'` : ''}`)}`
        : `expected --gpu, one of ${names.sort().join(', ')}`,
    );
  }
  const hasExperts = (profile: EngineProfile) => (profile.parallel?.expert ?? 1) > 1;
  const fit = (profile: EngineProfile) =>
    2 * Number((profile.model.kvCache === 'FP8') === fp8KvCache) + Number(hasExperts(profile) === expert);
  const [profile] = fitting.sort((a, b) => fit(b) - fit(a));
  return {
    profile,
    engines: shared.length > 0 ? 1 : data,
    notSimulated: [
      ...linesIf(expert && tensor * data > 1 && !hasExperts(profile), '--enable-expert-parallel'),
      ...linesIf(fp8KvCache && profile.model.kvCache !== 'FP8', 'the FP8 KV cache: no profile has it'),
    ],
  };
}
